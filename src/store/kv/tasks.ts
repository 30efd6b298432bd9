/** Tasks as they are kept: one key each is the truth, written only from the mark that was read; its hint is written before it. */
import { HoldfastError } from '../../core/errors.ts'
import type { Instant, TaskRecord } from '../../core/task.ts'
import {
  type Asides,
  type BuriedBody,
  corrupt,
  decodeTask,
  encodeBuried,
  encodeLiving,
  hashOf,
  type LivingBody,
  LONG_FIELDS,
  newNonce,
  type TaskBody,
} from './bodies.ts'
import type { Discards } from './discards.ts'
import { Held } from './held.ts'
import type { Mark } from './key-value.ts'
import { asideKey, hintFor, parseHint, taskKey } from './names.ts'
import { pause, type SteadyKeyValue } from './steady.ts'

/** A task that is there, its long texts in place. */
export interface Living extends LivingBody {
  readonly mark: Mark
}

/** What is left of one that was removed. */
export interface Buried extends BuriedBody {
  readonly mark: Mark
}

export type Kept = Living | Buried

export const isLiving = (kept: Kept | null): kept is Living => kept !== null && 'task' in kept

/** A task to be made. */
export interface Made {
  readonly task: TaskRecord
  readonly asides: Asides
  /** Of the idempotency key that it is made for. */
  readonly birth: string | null
  /** Monotonic: when what this rests on was read. */
  readonly since: number
  /** Written already, for the first write of this task and of others; null: it needs one of its own. */
  readonly hint: string | null
}

/** A writer that was stopped for longer must begin anew: after twice that, all of what it saw may have been swept. */
const LONGEST_GAP = 300_000

/** How a write ended: the task as it is kept now, or null when somebody wrote first. */
export type Outcome = Living | null

/** Whoever sealed something takes it away within this time, or seals it anew. */
export const SEAL_LIFE = 5_000
/** So much later nobody can still be about to take it away: it may be written over. */
export const SEAL_OVER = 60_000
const SEAL_TRIES = 40
const SEAL_WAIT = 50

export class Tasks {
  readonly held = new Held()
  readonly #kv: SteadyKeyValue
  readonly #discards: Discards

  constructor(kv: SteadyKeyValue, discards: Discards) {
    this.#kv = kv
    this.#discards = discards
  }

  async read(id: string): Promise<Kept | null> {
    for (let tries = 0; ; tries++) {
      const key = taskKey(id)
      const entry = await this.#kv.get(key)
      if (entry === null) return null
      const { mark } = entry
      const body = decodeTask(key, entry.value)
      if (!('task' in body)) return { ...body, mark }
      const whole = await this.whole(body)
      if (whole !== null) return { ...body, task: whole, mark }
      // Written anew between the two reads, and its old texts taken away; or lost.
      if (tries === 3) throw corrupt(key, 'has lost a long text')
    }
  }

  /** With its long texts in place; null: one of them is not there. */
  async whole({ task, asides }: TaskBody): Promise<TaskRecord | null> {
    const texts = await Promise.all(
      LONG_FIELDS.map(async (field) => {
        const aside = asides[field]
        if (aside === undefined) return null
        const text = (await this.#kv.get(aside.key))?.value
        if (text === undefined) return undefined
        if (hashOf(text) !== aside.hash) throw corrupt(aside.key, 'is not the text that was written')
        return [field, text] as const
      }),
    )
    if (texts.includes(undefined)) return null
    const long = texts.filter((one) => one !== null && one !== undefined)
    return long.length === 0 ? task : { ...task, ...Object.fromEntries(long) }
  }

  /** Long texts under keys of their own; those that `before` has already stay where they are. */
  async setAside(task: TaskRecord, before?: TaskBody): Promise<Asides> {
    const asides: Record<string, { key: string; hash: string }> = {}
    const nonce = newNonce()
    await Promise.all(
      LONG_FIELDS.map(async (field) => {
        const text = task[field]
        if (text === null || text.length <= this.#kv.longText / 4) return
        if (Buffer.byteLength(text) <= this.#kv.longText) return
        const kept = before?.asides[field]
        if (kept !== undefined && before?.task[field] === text) {
          asides[field] = kept
          return
        }
        const aside = { key: asideKey(task.id, nonce, field), hash: hashOf(text) }
        await this.#kv.create(aside.key, text)
        asides[field] = aside
      }),
    )
    return asides
  }

  discard(asides: Asides): void {
    this.#discards.add(Object.values(asides).map(({ key }) => key))
  }

  /** A new task, perhaps over what is left of an old one. null: something else is there. */
  async create(made: Made, buried: Buried | null = null): Promise<Outcome> {
    return this.#put(buried, made)
  }

  /** The same task, moved or renewed. */
  async write(before: Living, task: TaskRecord, isUrgent = false): Promise<Outcome> {
    const asides = await this.setAside(task, before)
    const after = await this.#put(before, { task, asides, birth: before.birth }, isUrgent)
    const [kept, dropped] = after === null ? [before, asides] : [after, before.asides]
    const stay = new Set(Object.values(kept.asides).map(({ key }) => key))
    this.#discards.add(
      Object.values(dropped)
        .map(({ key }) => key)
        .filter((key) => !stay.has(key)),
    )
    return after
  }

  async #put(
    before: Kept | null,
    { task, asides, birth, since, hint: shared = null }: Pick<Made, 'task' | 'asides' | 'birth'> & Partial<Made>,
    isUrgent = false,
  ): Promise<Outcome> {
    const { id } = task
    const sequence = (before?.sequence ?? 0) + 1
    const current = isLiving(before) ? before.hint : null
    const hint = shared ?? hintFor(task, sequence, current)
    // Before the task, so that no moment is without one: a hint for nothing is harmless, a task without one is lost.
    if (hint !== null && hint !== current && hint !== shared) await this.#kv.create(hint, '')
    // What is begun is finished before something else is.
    const turn = isUrgent ? 'now' : hint === current ? 'last' : 'next'
    if (since !== undefined && performance.now() - since > LONGEST_GAP)
      throw new HoldfastError('STORE_UNAVAILABLE', `${this.#kv.address}: this process stood still while it was writing`)
    const body: LivingBody = { sequence, birth, hint, task, asides }
    const value = encodeLiving(body)
    const mark =
      before === null
        ? await this.#kv.create(taskKey(id), value, turn)
        : await this.#kv.update(taskKey(id), value, before.mark, turn)
    if (mark === null) {
      this.held.delete(id)
      return null
    }
    if (current !== null && current !== hint) this.#discards.add([current])
    return { ...body, mark }
  }

  /** Leaves a mark in the task's place. False: somebody wrote first. */
  async bury(before: Kept | null, id: string, body: Omit<BuriedBody, 'sequence' | 'birth'>): Promise<boolean> {
    const buried = encodeBuried({ ...body, sequence: (before?.sequence ?? 0) + 1, birth: before?.birth ?? null })
    this.held.delete(id)
    const mark =
      before === null
        ? await this.#kv.create(taskKey(id), buried)
        : await this.#kv.update(taskKey(id), buried, before.mark)
    if (mark === null) return false
    if (isLiving(before)) {
      const { hint, asides } = before
      this.#discards.add([...(hint === null ? [] : [hint]), ...Object.values(asides).map(({ key }) => key)])
    }
    return true
  }

  /** Writes it again as it is: whoever was about to write it from the old mark has to read it first. */
  async touch(before: Living): Promise<Outcome> {
    const body: LivingBody = { ...before, sequence: before.sequence + 1 }
    const mark = await this.#kv.update(taskKey(before.task.id), encodeLiving(body), before.mark)
    return mark === null ? null : { ...body, mark }
  }

  /** Takes away a hint that neither is the task's own nor can become it: the write that it was made for has been decided. */
  dropHint(key: string, kept: Kept): boolean {
    const hint = parseHint(key)
    if (hint === null || hint.sequence > kept.sequence || (isLiving(kept) && kept.hint === key)) return false
    this.#discards.add([key])
    return true
  }
}

/** Somebody is taking this away. Waits until it is gone, or so long that whoever it was cannot be about to any more. */
export const pastSeal = async <T extends { readonly sealedAt: Instant | null }>(
  read: () => Promise<T | null>,
  now: () => Promise<Instant>,
): Promise<T | null> => {
  for (let tries = 0; tries < SEAL_TRIES; tries++) {
    const found = await read()
    if (found === null || found.sealedAt === null || (await now()) - found.sealedAt > SEAL_OVER) return found
    await pause(SEAL_WAIT)
  }
  throw new HoldfastError('STORE_BUSY', 'what was removed here is just being swept away: repeat the call')
}
