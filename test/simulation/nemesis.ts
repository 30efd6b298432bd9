/** Does what happens to processes, machines and networks: kills, pauses, cuts, stalls and steps of clocks. */
import type { Random } from '../../src/testing/random.ts'
import type { Host } from './host.ts'
import { FAULTS, type Fault } from './settings.ts'
import type { Simulation } from './simulation.ts'

export class Nemesis {
  readonly #simulation: Simulation
  readonly #randoms: ReadonlyMap<Fault, Random>

  constructor(simulation: Simulation) {
    this.#simulation = simulation
    this.#randoms = new Map(
      (Object.keys(FAULTS) as Fault[]).map((fault) => [fault, simulation.kernel.random(`nemesis ${fault}`)]),
    )
  }

  start(): void {
    const { settings } = this.#simulation
    for (const [fault, kind] of Object.entries(FAULTS) as [Fault, string][])
      if (kind === 'event' && fault !== 'operators' && settings.faults[fault] > 0) void this.#haunt(fault)
  }

  /** At random instants, as often as the rate says on average. */
  async #haunt(fault: Fault): Promise<void> {
    const { kernel, settings, marks, trace } = this.#simulation
    const random = this.#randoms.get(fault)!
    for (;;) {
      await kernel.sleep((-Math.log(1 - random.next()) / settings.faults[fault]) * 1_000)
      if (this.#simulation.isHealed) return
      const what = this.#strike(fault, random)
      if (what === null) continue
      this.#simulation.wire.faults++
      marks.hit(fault)
      trace.line('nemesis', what)
    }
  }

  #victim(random: Random): Host | undefined {
    return random.pick([...this.#simulation.hosts].filter(({ state }) => state === 'up'))
  }

  #strike(fault: Fault, random: Random): string | null {
    const { wire, calls, settings, machines } = this.#simulation
    if (fault === 'stall-store') {
      const length = random.next() * 8_000
      wire.stall(length)
      return `the store stalls for ${Math.round(length)} ms`
    }
    if (fault === 'step-clock') {
      const machine = random.pick(machines)!
      // The store's own clock is disciplined; SQLite carries its time over a step back of less than ten minutes.
      const step = (random.next() - 0.5) * (machine === machines[0] ? (settings.isOneMachine ? 60_000 : 0) : 7_200_000)
      machine.offset += Math.round(step)
      return `a clock is set by ${Math.round(step)} ms`
    }
    if (fault === 'sleep-machine') {
      if (machines.length === 1) return null
      const machine = random.pick(machines.slice(1))!
      const length = 1_000 + random.next() * 20_000
      if (machine.sleepsFor > 0) return null
      machine.sleepFor(length)
      for (const host of this.#simulation.hosts) if (host.machine === machine) host.pause(length)
      return `a machine sleeps for ${Math.round(length)} ms`
    }
    const host = this.#victim(random)
    if (host === undefined) return null
    switch (fault) {
      case 'kill':
        host.kill()
        return `kills ${host.name}`
      case 'pause': {
        const length = random.next() * settings.leaseTtl * 4
        host.pause(length)
        calls.lost.set(host, (calls.lost.get(host) ?? 0) + length)
        return `pauses ${host.name} for ${Math.round(length)} ms`
      }
      case 'cut': {
        const length = random.next() * settings.leaseTtl * 3
        wire.cut(host, length)
        return `cuts ${host.name} off for ${Math.round(length)} ms`
      }
      case 'stop-worker': {
        const one = this.#simulation.workers.find((each) => each?.host === host)
        if (one == null) return null
        void host.enter(() => one.worker.stop()).then(() => host.kill())
        return `stops ${host.name} gracefully`
      }
      default:
        return null
    }
  }
}
