/** Runs everything, each system in a separate process, the systems taking turns, and computes medians. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type MachineFacts, machineFacts, Others } from './machine.ts'
import { medianOf } from './median.ts'
import { peerVersions } from './peers.ts'
import type { Measured } from './run-one.ts'
import { type Environment, type Servers, startServers } from './servers.ts'
import type { Keeps } from './system.ts'
import type { Entrant, Field } from './systems.ts'
import { compare, type Ratio } from './targets.ts'
import { turns } from './turns.ts'
import type { Cost, Workload } from './workloads.ts'

/** One figure of one workload: a value for each run of each system. */
export interface Row {
  readonly workload: string
  readonly what: string
  readonly figure: string
  readonly unit: string
  readonly runs: Readonly<Record<string, readonly number[]>>
  readonly median: Readonly<Record<string, number>>
}

/** What the tasks of one workload cost each system: medians. */
export interface CostRow {
  readonly workload: string
  readonly what: string
  readonly systems: Readonly<Record<string, Cost & { readonly maxRssMegabytes: number }>>
}

export interface Report {
  readonly field: Field
  readonly machine: MachineFacts
  /** How much of the machine other processes used, in percent. */
  readonly othersPercent: number
  /** The servers, and the systems that could not take part. */
  readonly notes: readonly string[]
  readonly command: string
  readonly tasks: number
  readonly runs: number
  readonly systems: Readonly<Record<string, Keeps>>
  readonly rows: readonly Row[]
  readonly costs: readonly CostRow[]
  readonly ratios: readonly Ratio[]
}

export interface Plan {
  readonly field: Field
  readonly entrants: readonly Entrant[]
  readonly workloads: readonly Workload[]
  readonly tasks: number
  readonly runs: number
  readonly command: string
  said(line: string): void
}

export const measure = async (plan: Plan): Promise<Report> => {
  const servers = await startServers(plan.entrants)
  try {
    return await measureOn(servers, plan)
  } finally {
    await servers.stop()
  }
}

const measureOn = async ({ lend, facts, missing }: Servers, plan: Plan): Promise<Report> => {
  const { field, workloads, tasks, runs, command, said } = plan
  const entrants = plan.entrants.filter(({ name }) => !missing.includes(name))
  const others = new Others()
  const systems: Record<string, Keeps> = {}
  const rows: Row[] = []
  const costs: CostRow[] = []
  for (const workload of workloads) {
    const measured = new Map<string, NonNullable<Measured['result']>[]>()
    const unable = new Set<string>()
    for (let run = 0; run < runs; run++) {
      for (const entrant of turns(entrants, run)) {
        const { name, only } = entrant
        if (unable.has(name) || only?.includes(workload.name) === false) continue
        said(`${workload.name}, run ${run + 1} of ${runs}: ${name}`)
        const { keeps, result, cpuSeconds } = await lend(entrant, (env) => runOne(name, workload.name, tasks, env))
        systems[name] = keeps
        others.ours(cpuSeconds)
        if (result === null) unable.add(name)
        else measured.set(name, [...(measured.get(name) ?? []), result])
      }
    }
    rows.push(...rowsOf(workload, measured))
    const cost = costOf(workload, measured)
    if (cost !== null) costs.push(cost)
  }
  return {
    field,
    machine: machineFacts(),
    othersPercent: others.share,
    notes: [...peerVersions(entrants.map(({ name }) => name)), ...facts],
    command,
    tasks,
    runs,
    systems,
    rows,
    costs,
    ratios: compare(field, rows, entrants),
  }
}

type MeasuredBySystem = ReadonlyMap<string, readonly NonNullable<Measured['result']>[]>

const rowsOf = ({ name, what }: Workload, measured: MeasuredBySystem): Row[] => {
  const figures = new Map<string, string>()
  for (const results of measured.values())
    for (const [figure, { unit }] of Object.entries(results[0]!.figures)) figures.set(figure, unit)
  return [...figures].map(([figure, unit]) => {
    const runs = Object.fromEntries(
      [...measured].map(([system, results]) => [system, results.map((result) => result.figures[figure]!.value)]),
    )
    return { workload: name, what, figure, unit, runs, median: mapValues(runs, medianOf) }
  })
}

const costOf = ({ name, what }: Workload, measured: MeasuredBySystem): CostRow | null => {
  const systems: Record<string, CostRow['systems'][string]> = {}
  for (const [system, results] of measured) {
    const costs = results.flatMap(({ cost }) => cost ?? [])
    if (costs.length === 0) continue
    systems[system] = {
      cpuMicros: medianOf(costs.map(({ cpuMicros }) => cpuMicros)),
      serverCpuMicros: medianOfKnown(costs.map(({ serverCpuMicros }) => serverCpuMicros)),
      walBytes: medianOfKnown(costs.map(({ walBytes }) => walBytes)),
      maxRssMegabytes: medianOf(results.map(({ maxRssMegabytes }) => maxRssMegabytes)),
    }
  }
  return Object.keys(systems).length === 0 ? null : { workload: name, what, systems }
}

const medianOfKnown = (values: readonly (number | null)[]): number | null => {
  const known = values.flatMap((value) => value ?? [])
  return known.length === 0 ? null : medianOf(known)
}

const mapValues = <A, B>(record: Readonly<Record<string, A>>, map: (value: A) => B): Record<string, B> =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value)]))

const runOne = (entrant: string, workload: string, tasks: number, env: Environment): Promise<Measured> =>
  new Promise((done, failed) => {
    const child = spawn(
      process.execPath,
      [fileURLToPath(new URL('./run-one.ts', import.meta.url)), entrant, workload, String(tasks)],
      { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } },
    )
    let out = ''
    let complaint = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (complaint += text))
    child.on('error', failed)
    child.on('close', (code) => {
      if (code !== 0) failed(new Error(`${entrant} failed in ${workload}:\n${complaint.trim() || `exit code ${code}`}`))
      else done(JSON.parse(out) as Measured)
    })
  })
