/** What the simulation needs of a simulated store, whichever it is. */
import type { Instant, TaskRecord } from '../../src/core/task.ts'
import type { Store } from '../../src/store/store.ts'
import type { Host } from './host.ts'
import type { Settings } from './settings.ts'

export interface SimulatedStore {
  /** Creates it, before there are faults. */
  prepare(host: Host): Promise<void>
  /** As this process opens it. */
  open(host: Host): Promise<Store>
  /** How long a task may wait for a worker to move it, in virtual milliseconds, while there are no faults. */
  recoversWithin(settings: Settings): number
  /** The store's own clock. */
  now(): Instant
  /** Every task with its history, read without the network. */
  all(): Promise<readonly TaskRecord[]>
  /** Violations of what the store's own layout promises, when nothing is under way. */
  broken(): Promise<readonly string[]>
}
