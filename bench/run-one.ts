/** One system and one workload in a separate process, so that CPU and memory are its own. Prints one line of JSON. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { meterOf } from './meter.ts'
import { type Keeps, placeOf } from './system.ts'
import { ENTRANTS } from './systems.ts'
import { type Result, WORKLOADS } from './workloads.ts'

export interface Measured {
  readonly keeps: Keeps
  /** For the whole life of the process, and the server during that time. */
  readonly cpuSeconds: number
  /** Null if this system cannot do it. */
  readonly result: (Result & { readonly maxRssMegabytes: number }) | null
}

const [entrantName, workloadName, tasks] = process.argv.slice(2)
const entrant = ENTRANTS.find(({ name }) => name === entrantName)!
const workload = WORKLOADS.find(({ name }) => name === workloadName)!
const dir = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
const meter = await meterOf(entrant.server, process.env)
try {
  const before = await meter.read()
  const system = await entrant.make()
  await system.open(placeOf(process.env, dir))
  const result = await workload.run(system, Number(tasks), meter)
  const maxRssMegabytes = process.resourceUsage().maxRSS / 1_024
  await system.close()
  const { user, system: kernel } = process.cpuUsage()
  const serverCpu = ((await meter.read()).cpuSeconds ?? 0) - (before.cpuSeconds ?? 0)
  const measured: Measured = {
    keeps: system.keeps,
    cpuSeconds: (user + kernel) / 1_000_000 + serverCpu,
    result: result === null ? null : { ...result, maxRssMegabytes },
  }
  console.log(JSON.stringify(measured))
} finally {
  await meter.close()
  rmSync(dir, { recursive: true, force: true })
}
