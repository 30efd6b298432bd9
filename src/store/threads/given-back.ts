/** Releases tasks that were claimed and never started, so that no retry is charged. */
import { isHoldfastError } from '../../core/errors.ts'
import { release } from '../../core/machine.ts'
import type { Change } from '../../core/task.ts'
import type { HeldLease, Store } from '../store.ts'

export type TasksOfStore = Pick<Store, 'now' | 'get' | 'commit'>

export type LeaseName = Pick<HeldLease, 'id' | 'token'>

export class GivenBack {
  readonly #tasks: TasksOfStore
  #leases: readonly LeaseName[] = []

  constructor(tasks: TasksOfStore) {
    this.#tasks = tasks
  }

  get isEmpty(): boolean {
    return this.#leases.length === 0
  }

  add(leases: readonly LeaseName[]): void {
    this.#leases = [...this.#leases, ...leases]
  }

  /** Releases that could not be written are tried again with the next call. */
  async write(): Promise<void> {
    const leases = this.#leases
    const [{ at }, records] = await Promise.all([this.#tasks.now(), this.#tasks.get(leases.map(({ id }) => id))])
    const changes: Change[] = []
    const left: LeaseName[] = []
    for (const [i, record] of records.entries()) {
      try {
        if (record !== null) changes.push(release(record, leases[i]!, at))
      } catch (error) {
        // Another process has moved it meanwhile.
        if (!isHoldfastError(error, 'STALE_LEASE')) throw error
      }
    }
    const committed = changes.length === 0 ? [] : await this.#tasks.commit(changes)
    for (const [i, { id }] of changes.entries())
      if (committed[i] === 'conflict') left.push(leases.find((lease) => lease.id === id)!)
    this.#leases = [...this.#leases.filter((lease) => !leases.includes(lease)), ...left]
  }
}
