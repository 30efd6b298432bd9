/** New tasks, alone or under an idempotency key. Whatever happens between two writes, anyone who comes later can finish. */
import { HoldfastError } from '../../core/errors.ts'
import { type KeyRecord, keyIsLive } from '../../core/idempotency.ts'
import type { Instant, TaskRecord } from '../../core/task.ts'
import type { Inserted, Insertion } from '../store.ts'
import type { Asides } from './bodies.ts'
import { type Seat, seatsFor } from './bundling.ts'
import { inTurn } from './in-turn.ts'
import type { KeptKey, Keys } from './keys.ts'
import type { SteadyKeyValue } from './steady.ts'
import { isLiving, type Kept, type Living, type Made, pastSeal, type Tasks } from './tasks.ts'

const TRIES = 20

/** What a key stands for: its task, nothing any more (null), or it does not count at all. */
type Holder = { readonly task: TaskRecord | null } | 'nothing'

/** A task to be made, and its place among those that may share a hint with it. */
interface Wanted {
  readonly task: TaskRecord
  readonly asides: Asides
  readonly seat?: Seat | undefined
}

export class Inserter {
  readonly #kv: SteadyKeyValue
  readonly #tasks: Tasks
  readonly #keys: Keys
  readonly #now: () => Promise<Instant>

  constructor(kv: SteadyKeyValue, tasks: Tasks, keys: Keys, now: () => Promise<Instant>) {
    this.#kv = kv
    this.#tasks = tasks
    this.#keys = keys
    this.#now = now
  }

  insert(insertions: readonly Insertion[], now: Instant): Promise<Inserted[]> {
    const seats = seatsFor(this.#kv, insertions, namesOf)
    return inTurn(insertions, namesOf, async (insertion) => {
      const seat = seats.get(insertion)
      try {
        return await this.#insertOne(insertion, seat, now)
      } finally {
        seat?.leave()
      }
    })
  }

  async #insertOne({ task, key }: Insertion, seat: Seat | undefined, now: Instant): Promise<Inserted> {
    const asides = await this.#tasks.setAside(task)
    const inserted = await this.#insertWith({ task, asides, seat }, key, now)
    // Nobody else knows of them.
    if (inserted.outcome !== 'created') this.#tasks.discard(asides)
    return inserted
  }

  async #insertWith(made: Wanted, key: KeyRecord | undefined, now: Instant): Promise<Inserted> {
    if (key !== undefined) return this.#insertKeyed(made, key, now)
    const found = await this.#make(await this.#seated(made, null))
    return found === 'made' ? { outcome: 'created' } : { outcome: 'clash', task: found.task }
  }

  async #seated({ task, asides, seat }: Wanted, birth: string | null): Promise<Made> {
    const since = performance.now()
    return { task, asides, birth, since, hint: (await seat?.hint()) ?? null }
  }

  async #insertKeyed({ task, asides, seat }: Wanted, key: KeyRecord, now: Instant): Promise<Inserted> {
    const made = { task, asides }
    for (let tries = 0; tries < TRIES; tries++) {
      const fresh = await this.#keys.stand(key, made, null)
      if (fresh !== null) return this.#finish(fresh, tries === 0 ? { ...made, seat } : made, now)
      // The others need not wait for what may take long.
      seat?.leave()
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
  async #finish(key: KeptKey, made: Wanted, now: Instant): Promise<Inserted> {
    const found = await this.#make(await this.#seated(made, key.birth))
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
    const found = await this.#make({ task, asides: made.asides, birth, since, hint: null })
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
        found === null
          ? // What is shared with others was made for the first try only.
            await this.#tasks.create(tries === 0 ? made : { ...made, hint: null })
          : await this.#revive(found as Exclude<Kept, Living>, { ...made, hint: null })
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
