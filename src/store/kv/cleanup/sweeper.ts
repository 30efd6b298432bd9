/** Deletes tombstones and idempotency keys whose time is over. */
import { keyIsLive } from '../../../core/idempotency.ts'
import type { Instant } from '../../../core/task.ts'
import type { RetryingKeyValue } from '../access/retrying-key-value.ts'
import { decodeKey, encodeTombstone } from '../records/bodies.ts'
import { DELETE_WITHIN, DELETION_OVER } from '../records/deletion-mark.ts'
import type { Keys } from '../records/keys.ts'
import { idOfTaskKey, parseSweepEntry, SWEEP, TASKS } from '../records/names.ts'
import { isLive, type Tasks } from '../records/tasks.ts'
import type { Discards } from './discards.ts'

const MOST = 1_000

export class Sweeper {
  readonly #kv: RetryingKeyValue
  readonly #tasks: Tasks
  readonly #keys: Keys
  readonly #discards: Discards

  constructor(kv: RetryingKeyValue, tasks: Tasks, keys: Keys, discards: Discards) {
    this.#kv = kv
    this.#tasks = tasks
    this.#keys = keys
    this.#discards = discards
  }

  /** True: there may be more. */
  async sweep(now: Instant): Promise<boolean> {
    const entries = (await this.#kv.list(SWEEP, { limit: MOST })).map(parseSweepEntry).filter(({ at }) => at <= now)
    await Promise.all(
      entries.map(async ({ key, of }) => {
        const isDone = of.startsWith(TASKS) ? await this.#sweepTask(of, now) : await this.#sweepKey(of, now)
        if (isDone) this.#discards.add([key])
      }),
    )
    await this.#discards.finished()
    return entries.length === MOST
  }

  async #sweepTask(path: string, now: Instant): Promise<boolean> {
    const id = idOfTaskKey(path)
    const tombstone = await this.#tasks.read(id)
    // Already deleted, or another task has the id now.
    if (tombstone === null || isLive(tombstone)) return true
    if (tombstone.deletingAt !== null && now - tombstone.deletingAt <= DELETION_OVER) return false
    const { idempotencyKey, endKey } = tombstone
    if (idempotencyKey !== null) await this.#keys.endOf(id, idempotencyKey, endKey ? 'void' : 'detached', now)
    const { mark, ...body } = tombstone
    const begun = performance.now()
    const marked = encodeTombstone({ ...body, sequence: body.sequence + 1, deletingAt: now })
    if ((await this.#kv.update(path, marked, mark)) === null) return false
    return this.#deleteInTime(path, begun)
  }

  async #sweepKey(path: string, now: Instant): Promise<boolean> {
    const entry = await this.#kv.get(path)
    if (entry === null) return true
    const body = decodeKey(path, entry.value)
    if (body.state === 'active') return true
    if (body.state === 'detached' && keyIsLive(body.record, false, now)) return false
    if (body.deletingAt !== null && now - body.deletingAt <= DELETION_OVER) return false
    const begun = performance.now()
    if ((await this.#keys.markDeleting({ ...body, mark: entry.mark }, now)) === null) return false
    return this.#deleteInTime(path, begun)
  }

  async #deleteInTime(path: string, begun: number): Promise<boolean> {
    if (performance.now() - begun > DELETE_WITHIN) return false
    await this.#kv.delete([path])
    return true
  }
}
