/**
 * Everything moves to another store while workers are live on both. The process that moves is killed, cut off and started again like the
 * others. Nothing may run in both stores, and nothing may be lost between them.
 */
import type { TaskRecord } from '../../src/core/task.ts'
import { isTerminal } from '../../src/core/task.ts'
import { hasDeparted } from '../../src/core/transfer/transfer.ts'
import { CopyChecker } from './checker/copy-checker.ts'
import { QUEUES, TYPE_NAMES } from './handlers.ts'
import { openSimulated, type StoreParts } from './profiles.ts'
import type { SimulatedStore } from './simulated-store.ts'
import type { Simulation } from './simulation.ts'

/** A move that was killed is begun again after a while. */
const AGAIN = 3_000
const LOOK_EVERY = 500

export class Relocation {
  readonly checker: CopyChecker
  readonly store: SimulatedStore
  readonly #simulation: Simulation
  #isDone = false

  constructor(simulation: Simulation, parts: StoreParts) {
    const { kernel, checker, marks, trace } = simulation
    this.#simulation = simulation
    this.checker = new CopyChecker(checker, kernel, marks, trace)
    this.store = openSimulated({ ...parts, checker: this.checker, name: 'new' })
  }

  start(): void {
    void this.#work()
    void this.#move()
  }

  /** Workers of the new store are there before the move begins: what is paused there must hold them back. */
  async #work(): Promise<void> {
    const { kernel, settings } = this.#simulation
    while (!this.#simulation.isHealed) {
      const caller = await this.#simulation.connected('new-worker', this.store)
      const { concurrency } = settings
      const worker = this.#simulation.started(() =>
        caller.host.enter(() =>
          this.#simulation.startWorker(caller, {
            types: TYPE_NAMES,
            queues: QUEUES,
            concurrency,
            checker: this.checker,
          }),
        ),
      )
      if (worker === null) caller.host.kill()
      await caller.host.died
      await kernel.sleep(AGAIN)
    }
  }

  async #move(): Promise<void> {
    const { kernel, settings, marks, trace, checker } = this.#simulation
    const random = kernel.random('mover')
    await kernel.sleep(random.next() * settings.faultyFor)
    while (!this.#isDone) {
      const { host, client } = await this.#simulation.connected('mover')
      const there = await Promise.race([this.#simulation.connect(host, this.store), host.died])
      if (there === undefined) continue
      const abort = new AbortController()
      // Somebody who stops it, and goes on later.
      const stopAfter = random.chance(0.3) ? random.next() * 10_000 : null
      if (stopAfter !== null && !this.#simulation.isHealed) host.after(stopAfter, () => abort.abort())
      trace.line(host.name, 'begins to move everything')
      const moving = host.enter(() => client.moveTo(there.client, { live: true, signal: abort.signal }))
      const ended = await Promise.race([
        moving.then(
          ({ stopped, conflicts }) => {
            if (conflicts.length > 0) checker.violate('I1', `a move left ${conflicts.join(', ')} behind`, conflicts[0])
            return stopped ?? 'moved'
          },
          (error: unknown) => {
            const code = host.holdfast.isHoldfastError(error) ? error.code : null
            if (code === null || code === 'INTERNAL')
              checker.violate('I15', `a move rejected with ${error instanceof Error ? error.stack : String(error)}`)
            return code ?? 'INTERNAL'
          },
        ),
        host.died.then(() => 'killed'),
      ])
      trace.line(host.name, `the move: ${ended}`)
      marks.hit(`a move: ${ended}`)
      this.#isDone = ended === 'moved'
      host.kill()
      await kernel.sleep(random.next() * AGAIN)
    }
  }

  /** Resolves when everything has moved and the new store is open to its workers. */
  async done(within: number): Promise<void> {
    const { kernel, checker } = this.#simulation
    const until = kernel.now + within
    while (!this.#isDone) {
      await kernel.sleep(LOOK_EVERY)
      if (kernel.now < until) continue
      checker.violate('I10', `the move has not ended ${within} ms after all faults`)
      return
    }
  }

  get isQuiet(): boolean {
    return [...this.checker.tasks.values()].every(({ status }) => isTerminal(status))
  }

  isRemoved(id: string): boolean {
    return this.checker.removed.has(id)
  }

  /** Every task once: as it is in the new store, or in the old one if it did not leave. */
  async all(old: readonly TaskRecord[]): Promise<readonly TaskRecord[]> {
    const there = await this.store.all()
    const stayed = old.filter((task) => !hasDeparted(task))
    const ids = new Set(stayed.map(({ id }) => id))
    for (const { id, status } of there)
      if (ids.has(id)) this.checker.violate('I1b', `task ${id} is in both stores, here as ${status}`, id)
    return [...stayed, ...there.filter(({ id }) => !ids.has(id))]
  }
}
