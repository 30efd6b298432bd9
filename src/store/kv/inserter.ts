/** Inserts tasks, with or without an idempotency key. Any process can finish an insert that stopped between two writes. */
import { HoldfastError } from '../../core/errors.ts'
import { type KeyRecord, keyIsLive } from '../../core/idempotency.ts'
import type { Instant, TaskRecord } from '../../core/task.ts'
import type { Inserted, Insertion } from '../store.ts'
import { serializeByKey } from './access/serialize-by-key.ts'
import { type BundleSlot, bundleSlotsFor } from './hints/bundle-slots.ts'
import type { Hints } from './hints/hints.ts'
import { newNonce, type TaskBody } from './records/bodies.ts'
import { readPastDeletion } from './records/deletion-mark.ts'
import type { Keys, StoredKey } from './records/keys.ts'
import { isLive, type LiveTask, type NewTask, type StoredTask, type Tasks, type Tombstone } from './records/tasks.ts'

const TRIES = 20

/** The task that a key stands for. `task` null: it was removed. `nothing`: the key does not count. */
type Holder = { readonly task: TaskRecord | null } | 'nothing'

interface Request extends TaskBody {
  readonly slot?: BundleSlot | undefined
  /** The key may stand for this task: then it passes to the new one. */
  readonly replaces?: string | undefined
}

export class Inserter {
  readonly #hints: Hints
  readonly #tasks: Tasks
  readonly #keys: Keys
  readonly #now: () => Promise<Instant>

  constructor(hints: Hints, tasks: Tasks, keys: Keys, now: () => Promise<Instant>) {
    this.#hints = hints
    this.#tasks = tasks
    this.#keys = keys
    this.#now = now
  }

  insert(insertions: readonly Insertion[], now: Instant): Promise<Inserted[]> {
    const slots = bundleSlotsFor(this.#hints, insertions, namesOf)
    return serializeByKey(insertions, namesOf, async (insertion) => {
      const slot = slots.get(insertion)
      try {
        return await this.#insertOne(insertion, slot, now)
      } finally {
        slot?.giveUp()
      }
    })
  }

  async #insertOne({ task, key, replaces }: Insertion, slot: BundleSlot | undefined, now: Instant): Promise<Inserted> {
    const body = await this.#tasks.largeValues.save(task)
    const request = { ...body, slot, replaces }
    const inserted = key === undefined ? await this.#insertPlain(request) : await this.#insertKeyed(request, key, now)
    if (inserted.outcome !== 'created') await this.#tasks.discardRefused(task.id, body.largeValues)
    return inserted
  }

  async #insertPlain(request: Request): Promise<Inserted> {
    const insertId = newNonce()
    const found = await this.#create(await this.#withHint(request, insertId))
    // Another process moved the task before the reply came.
    const isOwn = found === 'created' || found.insertId === insertId
    return isOwn ? { outcome: 'created' } : { outcome: 'clash', task: found.task }
  }

  async #withHint({ task, largeValues, slot }: Request, insertId: string): Promise<NewTask> {
    const since = performance.now()
    return { task, largeValues, insertId, since, hint: (await slot?.take()) ?? null }
  }

  async #insertKeyed({ slot, ...request }: Request, key: KeyRecord, now: Instant): Promise<Inserted> {
    const insertId = newNonce()
    for (let tries = 0; tries < TRIES; tries++) {
      const fresh = await this.#keys.activate(key, { insertId, ...request }, null)
      if (fresh !== null) return this.#finish(fresh, tries === 0 ? { ...request, slot } : request, now)
      // The rest may take long, and the other tasks of the bundle should not wait for it.
      slot?.giveUp()
      const found = await readPastDeletion(() => this.#keys.read(key.key), this.#now)
      if (found === null) continue
      // The reply was lost, another process finished this insert, and the key has ended with its task since.
      if (found.insertId === insertId && found.state !== 'active') return { outcome: 'created' }
      const holder = await this.#holderOf(found, now)
      const isLiveKey = holder !== 'nothing' && keyIsLive(found.record, holder.task !== null, now)
      if (isLiveKey && found.record.taskId !== request.replaces)
        return { outcome: 'existing', key: found.record, task: holder.task }
      const clash = await this.#tasks.read(request.task.id)
      if (isLive(clash)) return { outcome: 'clash', task: clash.task }
      const replaced = await this.#keys.activate(key, { insertId, ...request }, found)
      if (replaced !== null) return this.#finish(replaced, request, now)
    }
    throw tooManyTries(`the idempotency key '${key.key}'`)
  }

  /** The key stands for this task: now write the task. */
  async #finish(key: StoredKey, request: Request, now: Instant): Promise<Inserted> {
    const found = await this.#create(await this.#withHint(request, key.insertId))
    if (found === 'created') return { outcome: 'created' }
    // Another process met the key without its task and finished this insert.
    if (found.insertId === key.insertId) return { outcome: 'created' }
    await this.#keys.end(key, 'void', now)
    return { outcome: 'clash', task: found.task }
  }

  /** Finishes the insert of a key without a task. All processes write the same task, so a key never gets a second one. */
  async #holderOf(key: StoredKey, now: Instant): Promise<Holder> {
    if (key.state === 'void') return 'nothing'
    const { record, insertion, insertId } = key
    const since = performance.now()
    const stored = await this.#tasks.read(record.taskId)
    // An active key whose id belongs to a task without that key lost a clash, and is about to become void.
    if (isLive(stored))
      return stored.task.idempotencyKey === record.key || key.state === 'detached' ? stored : 'nothing'
    if (key.state === 'detached') return { task: null }
    // The task was removed, and the key does not show it yet.
    if (stored !== null && !stored.isEmpty) return stored.endKey ? 'nothing' : { task: null }
    if (insertion === null || now >= record.expiresAt) return { task: null }
    const task = await this.#tasks.largeValues.load(insertion)
    if (task === null) return { task: null }
    const found = await this.#create({ task, largeValues: insertion.largeValues, insertId, since, hint: null })
    return { task: found === 'created' ? task : found.task }
  }

  /** The task that a key stands for. null: there is no such key. */
  async find(key: string, now: Instant): Promise<{ key: KeyRecord; task: TaskRecord | null } | null> {
    const found = await this.#keys.read(key)
    if (found === null || found.deletingAt !== null) return null
    const holder = await this.#holderOf(found, now)
    return holder === 'nothing' ? null : { key: found.record, task: holder.task }
  }

  /** `created`, or the task that already has the id. */
  async #create(made: NewTask): Promise<'created' | LiveTask> {
    const { id } = made.task
    let found: Exclude<StoredTask, LiveTask> | null = null
    for (let tries = 0; tries < TRIES; tries++) {
      // A repeat of an insert whose task was completed and removed meanwhile is not a new insert.
      if (found !== null && isRepeat(found, made)) return 'created'
      // The hint of a bundle is only valid for the first write of the task.
      const written = await this.#tasks.create(tries === 0 ? made : { ...made, hint: null }, found)
      if (written !== null) {
        // A process that submits often also works, and then need not read the task.
        this.#tasks.cache.set(written)
        return 'created'
      }
      const stored = await this.#read(id)
      if (isLive(stored)) return stored
      found = stored
    }
    throw tooManyTries(`task ${id}`)
  }

  async #read(id: string): Promise<StoredTask | null> {
    return readPastDeletion(async () => {
      const stored = await this.#tasks.read(id)
      return stored === null ? null : { ...stored, deletingAt: isLive(stored) ? null : stored.deletingAt }
    }, this.#now)
  }
}

const isRepeat = (tombstone: Tombstone, made: NewTask): boolean =>
  tombstone.insertId === made.insertId && !tombstone.isEmpty

const namesOf = ({ task, key }: Insertion): readonly string[] =>
  key === undefined ? [`id ${task.id}`] : [`id ${task.id}`, `key ${key.key}`]

const tooManyTries = (what: string): HoldfastError =>
  new HoldfastError('STORE_CONFLICT', `${what} changed during each of ${TRIES} tries`)
