/** Writes that name one task: changes under their revision, renewals under their token, removals. */
import { HoldfastError } from '../../core/errors.ts'
import { applyChange, type Change, type Instant } from '../../core/task.ts'
import type { Committed, Removal, Removed, Renewal, Renewed } from '../store.ts'
import { inTurn } from './in-turn.ts'
import type { Keys } from './keys.ts'
import { graveKey, taskKey } from './names.ts'
import type { SteadyKeyValue } from './steady.ts'
import { isLiving, type Living, type Tasks } from './tasks.ts'

const TRIES = 20
/** How long the mark of a removed task stays: longer than any writer that still believes in it can take. */
const GRAVE_LIFE = 600_000

const idOf = ({ id }: { readonly id: string }): readonly string[] => [id]

/** Told of every task as it is now, so that a look knows without reading. */
export type Noticed = (living: Living, before: Living) => void

export class Committer {
  readonly #kv: SteadyKeyValue
  readonly #tasks: Tasks
  readonly #keys: Keys
  readonly #noticed: Noticed

  constructor(kv: SteadyKeyValue, tasks: Tasks, keys: Keys, noticed: Noticed) {
    this.#kv = kv
    this.#tasks = tasks
    this.#keys = keys
    this.#noticed = noticed
  }

  commit(changes: readonly Change[]): Promise<Committed[]> {
    return inTurn(changes, idOf, (change) => this.#commitOne(change))
  }

  async #commitOne(change: Change): Promise<Committed> {
    const written = await this.#rewrite(change.id, false, ({ task }) => {
      if (task.revision !== change.revision) return null
      if (change.leaseExpiresAt !== undefined && task.lease?.expiresAt !== change.leaseExpiresAt) return null
      return applyChange(task, change)
    })
    return written === 'gone' ? 'gone' : written === null ? 'conflict' : 'written'
  }

  renew(renewals: readonly Renewal[], now: Instant): Promise<Renewed[]> {
    return inTurn(renewals, idOf, async ({ id, token, leaseTtl, progress }): Promise<Renewed> => {
      const renewed = await this.#rewrite(id, true, ({ task }) => {
        if (task.status !== 'running' || task.lease?.token !== token) return null
        const lease = { ...task.lease, expiresAt: now + leaseTtl }
        return { ...task, lease, progress: progress ?? task.progress }
      })
      if (renewed === 'gone' || renewed === null) return 'lost'
      return renewed.task.cancelRequestedAt === null ? 'held' : 'cancel'
    })
  }

  /** Writes what `decide` makes of the task, and again if somebody else wrote meanwhile; null: it wants nothing of what is there. */
  async #rewrite(
    id: string,
    isUrgent: boolean,
    decide: (living: Living) => Living['task'] | null,
  ): Promise<Living | 'gone' | null> {
    let known = this.#tasks.held.get(id)
    for (let tries = 0; tries < TRIES; tries++) {
      const before = known ?? (await this.#tasks.read(id))
      if (!isLiving(before)) return 'gone'
      const task = decide(before)
      if (task === null) {
        // What we remember may be out of date; what we have just read is not.
        if (known === undefined) return null
        known = undefined
        continue
      }
      const after = await this.#tasks.write(before, task, isUrgent)
      if (after !== null) {
        if (after.hint === null) this.#tasks.held.delete(id)
        else this.#tasks.held.set(after)
        this.#noticed(after, before)
        return after
      }
      known = undefined
    }
    throw new HoldfastError('STORE_CONFLICT', `task ${id} changed under every one of ${TRIES} tries`, { id })
  }

  remove(removals: readonly Removal[], now: Instant): Promise<Removed[]> {
    return inTurn(removals, idOf, (removal) => this.#removeOne(removal, now))
  }

  /** Where there never was a task: whoever is about to write one there has to begin anew. */
  async buryEmpty(id: string, now: Instant): Promise<void> {
    await this.#kv.create(graveKey(now + GRAVE_LIFE, taskKey(id)), '')
    const body = { buriedAt: now, idempotencyKey: null, endKey: false, isEmpty: true, sealedAt: null }
    await this.#tasks.bury(null, id, body)
  }

  /** The mark in the task's place decides; what follows can be finished by the sweep. */
  async #removeOne({ id, revision, endKey }: Removal, now: Instant): Promise<Removed> {
    for (let tries = 0; tries < TRIES; tries++) {
      const before = await this.#tasks.read(id)
      if (!isLiving(before)) return 'gone'
      if (before.task.revision !== revision) return 'conflict'
      const { idempotencyKey } = before.task
      await this.#kv.create(graveKey(now + GRAVE_LIFE, taskKey(id)), '')
      const body = { buriedAt: now, idempotencyKey, endKey, isEmpty: false, sealedAt: null }
      if (!(await this.#tasks.bury(before, id, body))) continue
      if (idempotencyKey !== null) await endKeyOf(this.#keys, id, { idempotencyKey, endKey }, now)
      return 'removed'
    }
    throw new HoldfastError('STORE_CONFLICT', `task ${id} changed under every one of ${TRIES} tries`, { id })
  }
}

/** The key of a removed task stands for nothing any more, or lives out its time alone. */
export const endKeyOf = async (
  keys: Keys,
  id: string,
  { idempotencyKey, endKey }: { readonly idempotencyKey: string; readonly endKey: boolean },
  now: Instant,
): Promise<void> => {
  for (let tries = 0; tries < TRIES; tries++) {
    const key = await keys.read(idempotencyKey)
    if (key === null || key.record.taskId !== id || key.state === 'void') return
    if (key.state === 'removed' && !endKey) return
    if ((await keys.end(key, endKey ? 'void' : 'removed', now)) !== null) return
  }
}
