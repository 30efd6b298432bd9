/** Writes to one task: changes guarded by the revision, renewals guarded by the lease token, and removals. */
import { HoldfastError } from '../../core/errors.ts'
import { canCommit, renewed } from '../../core/guards.ts'
import { raised } from '../../core/storage/restore.ts'
import { applyChange, type Change, type Instant } from '../../core/task.ts'
import type { Committed, Removal, Removed, Renewal, Renewed } from '../store.ts'
import type { RetryingKeyValue } from './access/retrying-key-value.ts'
import { serializeByKey } from './access/serialize-by-key.ts'
import type { Keys } from './records/keys.ts'
import { sweepKey, taskKey } from './records/names.ts'
import { isLive, type LiveTask, type Tasks } from './records/tasks.ts'

const TRIES = 20
/** Longer than any writer that still believes in the task can take. */
const TOMBSTONE_LIFE = 600_000

const idOf = ({ id }: { readonly id: string }): readonly string[] => [id]

export class Committer {
  readonly #kv: RetryingKeyValue
  readonly #tasks: Tasks
  readonly #keys: Keys
  readonly #onWrite: (after: LiveTask, before: LiveTask) => void

  constructor(kv: RetryingKeyValue, tasks: Tasks, keys: Keys, onWrite: (after: LiveTask, before: LiveTask) => void) {
    this.#kv = kv
    this.#tasks = tasks
    this.#keys = keys
    this.#onWrite = onWrite
  }

  commit(changes: readonly Change[]): Promise<Committed[]> {
    return serializeByKey(changes, idOf, (change) => this.#commitOne(change))
  }

  async #commitOne(change: Change): Promise<Committed> {
    const written = await this.#rewrite(change.id, false, ({ task }) =>
      canCommit(task, change) ? applyChange(task, change) : null,
    )
    return written === 'gone' ? 'gone' : written === null ? 'conflict' : 'written'
  }

  /** `now` is asked for at each try: a renewal that was held up and is decided again must not end the lease earlier than later ones did. */
  renew(renewals: readonly Renewal[], now: () => Instant): Promise<Renewed[]> {
    return serializeByKey(renewals, idOf, async (renewal): Promise<Renewed> => {
      const after = await this.#rewrite(renewal.id, true, ({ task }) => renewed(task, renewal, now()))
      if (after === 'gone' || after === null) return 'lost'
      return after.task.cancelRequestedAt === null ? 'held' : 'cancel'
    })
  }

  /** After a restore. False: the task does not run again. */
  async raiseFence(id: string): Promise<boolean> {
    const written = await this.#rewrite(id, false, ({ task }) => raised(task))
    return written !== null && written !== 'gone'
  }

  /** Writes what `decide` returns, and decides again if another process wrote first. null: `decide` refused. */
  async #rewrite(
    id: string,
    isUrgent: boolean,
    decide: (live: LiveTask) => LiveTask['task'] | null,
  ): Promise<LiveTask | 'gone' | null> {
    let cached = this.#tasks.cache.get(id)
    for (let tries = 0; tries < TRIES; tries++) {
      const before = cached ?? (await this.#tasks.read(id, isUrgent ? 'urgent' : 'last'))
      if (!isLive(before)) return 'gone'
      const task = decide(before)
      if (task === null) {
        // The cache may be out of date. What was just read is not.
        if (cached === undefined) return null
        cached = undefined
        continue
      }
      const after = await this.#tasks.write(before, task, { isUrgent })
      if (after !== null) {
        if (after.hint === null) this.#tasks.cache.delete(id)
        else this.#tasks.cache.set(after)
        this.#onWrite(after, before)
        return after
      }
      cached = undefined
    }
    throw tooManyTries(id)
  }

  remove(removals: readonly Removal[], now: Instant): Promise<Removed[]> {
    return serializeByKey(removals, idOf, (removal) => this.#removeOne(removal, now))
  }

  /** Where a hint has no task: forces the writer of the hint, if it is still alive, to start again. */
  async writeEmptyTombstone(id: string, now: Instant): Promise<boolean> {
    await this.#kv.create(sweepKey(now + TOMBSTONE_LIFE, taskKey(id)), '')
    const body = { removedAt: now, idempotencyKey: null, endKey: false, isEmpty: true, deletingAt: null }
    return this.#tasks.replaceWithTombstone(null, id, body)
  }

  /** The tombstone decides. If this process dies afterwards, the sweep finishes the removal. */
  async #removeOne({ id, revision, endKey }: Removal, now: Instant): Promise<Removed> {
    for (let tries = 0; tries < TRIES; tries++) {
      const before = await this.#tasks.read(id)
      if (!isLive(before)) return 'gone'
      if (before.task.revision !== revision) return 'conflict'
      const { idempotencyKey } = before.task
      await this.#kv.create(sweepKey(now + TOMBSTONE_LIFE, taskKey(id)), '')
      const body = { removedAt: now, idempotencyKey, endKey, isEmpty: false, deletingAt: null }
      if (!(await this.#tasks.replaceWithTombstone(before, id, body))) continue
      if (idempotencyKey !== null) await this.#keys.endOf(id, idempotencyKey, endKey ? 'void' : 'detached', now)
      return 'removed'
    }
    throw tooManyTries(id)
  }
}

const tooManyTries = (id: string): HoldfastError =>
  new HoldfastError('STORE_CONFLICT', `task ${id} changed during each of ${TRIES} tries`, { id })
