/** New tasks, alone or under an idempotency key. Whatever happens between two writes, anyone who comes later can finish. */
import { HoldfastError } from '../../core/errors.ts'
import { type KeyRecord, keyIsLive } from '../../core/idempotency.ts'
import type { Instant, TaskRecord } from '../../core/task.ts'
import type { Inserted, Insertion } from '../store.ts'
import type { Asides } from './bodies.ts'
import { inTurn } from './in-turn.ts'
import type { KeptKey, Keys } from './keys.ts'
import { isLiving, type Kept, type Living, type Made, pastSeal, type Tasks } from './tasks.ts'

const TRIES = 20

/** What a key stands for: its task, nothing any more (null), or it does not count at all. */
type Holder = { readonly task: TaskRecord | null } | 'nothing'

export class Inserter {
  readonly #tasks: Tasks
  readonly #keys: Keys
  readonly #now: () => Promise<Instant>

  constructor(tasks: Tasks, keys: Keys, now: () => Promise<Instant>) {
    this.#tasks = tasks
    this.#keys = keys
    this.#now = now
  }

  insert(insertions: readonly Insertion[], now: Instant): Promise<Inserted[]> {
    return inTurn(insertions, namesOf, (insertion) => this.#insertOne(insertion, now))
  }

  async #insertOne({ task, key }: Insertion, now: Instant): Promise<Inserted> {
    const asides = await this.#tasks.setAside(task)
    const inserted = await this.#insertWith({ task, asides }, key, now)
    // Nobody else knows of them.
    if (inserted.outcome !== 'created') this.#tasks.discard(asides)
    return inserted
  }

  async #insertWith(made: Pick<Made, 'task' | 'asides'>, key: KeyRecord | undefined, now: Instant): Promise<Inserted> {
    if (key !== undefined) return this.#insertKeyed(made, key, now)
    const { task, asides } = made
    const found = await this.#make({ task, asides, birth: null, since: performance.now() })
    return found === 'made' ? { outcome: 'created' } : { outcome: 'clash', task: found.task }
  }

  async #insertKeyed(
    made: { readonly task: TaskRecord; readonly asides: Asides },
    key: KeyRecord,
    now: Instant,
  ): Promise<Inserted> {
    for (let tries = 0; tries < TRIES; tries++) {
      const fresh = await this.#keys.stand(key, made, null)
      if (fresh !== null) return this.#finish(fresh, made, now)
      const found = await pastSeal(() => this.#keys.read(key.key), this.#now)
      if (found === null) continue
      const holder = await this.#holderOf(found, now)
      if (holder !== 'nothing' && keyIsLive(found.record, holder.task !== null, now))
        return { outcome: 'existing', key: found.record, task: holder.task }
      const clash = await this.#tasks.read(made.task.id)
      if (isLiving(clash)) return { outcome: 'clash', task: clash.task }
      const replaced = await this.#keys.stand(key, made, found)
      if (replaced !== null) return this.#finish(replaced, made, now)
    }
    throw tooManyTries(`the idempotency key '${key.key}'`)
  }

  /** The key is ours: now its task. */
  async #finish(key: KeptKey, made: { task: TaskRecord; asides: Asides }, now: Instant): Promise<Inserted> {
    const found = await this.#make({ ...made, birth: key.birth, since: performance.now() })
    if (found === 'made') return { outcome: 'created' }
    // Somebody met the key without its task and finished what we began.
    if (found.birth === key.birth) return { outcome: 'created' }
    await this.#keys.end(key, 'void', now)
    return { outcome: 'clash', task: found.task }
  }

  /** Whoever meets a key without its task finishes the insert, with the same task: so nobody can make another for that key. */
  async #holderOf(key: KeptKey, now: Instant): Promise<Holder> {
    if (key.state === 'void') return 'nothing'
    const { record, made, birth } = key
    const since = performance.now()
    const kept = await this.#tasks.read(record.taskId)
    // A standing key whose id another task has was about to be taken back, because of that clash.
    if (isLiving(kept)) return kept.task.idempotencyKey === record.key || key.state === 'removed' ? kept : 'nothing'
    if (key.state === 'removed') return { task: null }
    // Removed, and whoever removed it has not yet told the key.
    if (kept !== null && !kept.isEmpty) return kept.endKey ? 'nothing' : { task: null }
    if (made === null || now >= record.expiresAt) return { task: null }
    const task = await this.#tasks.whole(made)
    if (task === null) return { task: null }
    const found = await this.#make({ task, asides: made.asides, birth, since })
    return { task: found === 'made' ? task : found.task }
  }

  /** The task that a key stands for, dead or alive; null: there is no such key. */
  async find(key: string, now: Instant): Promise<{ key: KeyRecord; task: TaskRecord | null } | null> {
    const found = await this.#keys.read(key)
    if (found === null || found.sealedAt !== null) return null
    const holder = await this.#holderOf(found, now)
    return holder === 'nothing' ? null : { key: found.record, task: holder.task }
  }

  /** `made`, or the task that has the id already. */
  async #make(made: Made): Promise<'made' | Living> {
    const { id } = made.task
    let found: Kept | null = null
    for (let tries = 0; tries < TRIES; tries++) {
      const written =
        found === null ? await this.#tasks.create(made) : await this.#revive(found as Exclude<Kept, Living>, made)
      if (written !== null) {
        // Whoever submits often works, too: then the claim need not read it.
        if (written !== 'before') this.#tasks.held.set(written)
        return 'made'
      }
      found = await this.#read(id)
      if (isLiving(found)) return found
    }
    throw tooManyTries(`task ${id}`)
  }

  async #read(id: string): Promise<Kept | null> {
    return pastSeal(async () => {
      const kept = await this.#tasks.read(id)
      return kept === null ? null : { ...kept, sealedAt: isLiving(kept) ? null : kept.sealedAt }
    }, this.#now)
  }

  /** A repeat of an insert whose task has lived and gone by now is no new insert. */
  async #revive(buried: Exclude<Kept, Living>, made: Made): Promise<Living | null | 'before'> {
    if (made.birth !== null && buried.birth === made.birth && !buried.isEmpty) return 'before'
    return this.#tasks.create(made, buried)
  }
}

const namesOf = ({ task, key }: Insertion): readonly string[] =>
  key === undefined ? [`id ${task.id}`] : [`id ${task.id}`, `key ${key.key}`]

const tooManyTries = (what: string): HoldfastError =>
  new HoldfastError('STORE_CONFLICT', `${what} changed under every one of ${TRIES} tries`)
