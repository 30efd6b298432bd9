/** Runs all cells, the systems taking turns, and collects the figures. */
import { type MachineFacts, machineFacts, Others } from '../machine.ts'
import { peerVersions } from '../peers.ts'
import { type Servers, startServers } from '../servers.ts'
import { turns } from '../turns.ts'
import { runDepth } from './cells/depth.ts'
import { type Cell, KINDS } from './cells.ts'
import type { Figures } from './figures.ts'
import { type Listener, withGround } from './ground.ts'
import type { Plan } from './plan.ts'
import { type CellResult, resultOf } from './results.ts'
import { described, runCell } from './run-cell.ts'
import { cpuSeconds } from './serve.ts'
import type { DeployedSystem } from './systems.ts'
import { judge, type Verdict } from './verdicts.ts'

export interface Report {
  readonly machine: MachineFacts
  /** How much of the machine other processes used, in percent. */
  readonly othersPercent: number
  readonly notes: readonly string[]
  readonly leftOut: readonly string[]
  /** Systems that could not do a cell, with the reason. */
  readonly failures: readonly string[]
  readonly command: string
  readonly tasks: number
  readonly runs: number
  readonly cells: readonly CellResult[]
  readonly targets: readonly Verdict[]
}

export interface Order {
  readonly plan: Plan
  readonly cells: readonly Cell[]
  readonly systems: readonly DeployedSystem[]
  readonly command: string
  said(line: string): void
}

export const measure = async (order: Order): Promise<Report> => {
  const servers = await startServers(order.systems)
  try {
    return await new Measurement(servers, order).run()
  } finally {
    await servers.stop()
  }
}

class Measurement {
  readonly #servers: Servers
  readonly #order: Order
  readonly #systems: readonly DeployedSystem[]
  readonly #others = new Others()
  readonly #failures: string[] = []
  readonly #notes = new Set<string>()
  readonly #results = new Map<string, Map<string, Figures[]>>()

  constructor(servers: Servers, order: Order) {
    this.#servers = servers
    this.#order = order
    this.#systems = order.systems.filter(({ name }) => !servers.missing.includes(name))
  }

  async run(): Promise<Report> {
    const { plan, cells, command } = this.#order
    for (const kind of KINDS) {
      const ofKind = cells.filter((cell) => cell.kind === kind)
      if (kind === 'depth') for (const cell of ofKind) await this.#depth(cell)
      else for (let run = 0; run < plan.runs; run++) for (const cell of ofKind) await this.#round(cell, run)
    }
    this.#others.ours(cpuSeconds())
    const results = cells.map((cell) => resultOf(described(cell, plan), this.#results.get(cell.name)))
    const measured = results.filter(({ runs }) => Object.keys(runs).length > 0)
    return {
      machine: machineFacts(),
      othersPercent: this.#others.share,
      notes: [...peerVersions(this.#systems.map(({ name }) => name)), ...this.#servers.facts, ...this.#notes],
      leftOut: [...plan.leftOut, ...(this.#systems.some(({ isPeer }) => isPeer) ? plan.peersLeftOut : [])],
      failures: this.#failures,
      command,
      tasks: plan.tasks,
      runs: plan.runs,
      cells: measured,
      targets: judge(measured),
    }
  }

  /** Each system once. */
  async #round(cell: Cell, run: number): Promise<void> {
    const { plan, said } = this.#order
    for (const system of turns(this.#takingPart(cell), run)) {
      said(`${cell.name}, run ${run + 1} of ${plan.runs}: ${system.name}`)
      await this.#attempt(cell, system, () =>
        withGround(this.#servers, system, this.#listener, async (ground) => [await runCell(ground, cell, plan)]),
      )
    }
  }

  /** All runs of a system together, because they share what it was filled with. */
  async #depth(cell: Cell): Promise<void> {
    const { plan, said } = this.#order
    for (const system of this.#takingPart(cell)) {
      said(`${cell.name}, ${plan.runs} ${plan.runs === 1 ? 'run' : 'runs'}: ${system.name}`)
      await this.#attempt(cell, system, () =>
        runDepth(this.#servers, system, { shape: cell.shape, ...plan.depth }, plan.runs, this.#listener),
      )
    }
  }

  #takingPart(cell: Cell): DeployedSystem[] {
    return this.#systems.filter((system) => this.#order.plan.takesPart(cell, system) && !this.#hasFailed(cell, system))
  }

  #hasFailed(cell: Cell, system: DeployedSystem): boolean {
    return this.#failures.some((failure) => failure.startsWith(failureOf(cell, system)))
  }

  /** A system that fails in a cell is skipped there from then on; the others continue. */
  async #attempt(cell: Cell, system: DeployedSystem, run: () => Promise<readonly Figures[]>): Promise<void> {
    try {
      const bySystem = this.#results.get(cell.name) ?? new Map<string, Figures[]>()
      this.#results.set(cell.name, bySystem)
      bySystem.set(system.name, [...(bySystem.get(system.name) ?? []), ...(await run())])
    } catch (error) {
      const failure = `${failureOf(cell, system)} ${error instanceof Error ? error.message : String(error)}`
      this.#order.said(failure)
      this.#failures.push(failure)
    }
  }

  readonly #listener: Listener = {
    ours: (seconds) => this.#others.ours(seconds),
    note: (text) => void this.#notes.add(text),
  }
}

const failureOf = ({ name }: Cell, system: DeployedSystem): string => `${system.name} failed in ${name}:`
