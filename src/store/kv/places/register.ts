/**
 * The places of one limit, in one key that is written by compare-and-set: so their number is never above the limit, however many
 * processes take places at once. What this process wants of a register goes into one write at a time.
 */
import { HoldfastError } from '../../../core/errors.ts'
import type { Instant } from '../../../core/task.ts'
import { fullJitter } from '../../../core/values/jitter.ts'
import type { Mark } from '../access/key-value.ts'
import { sleep } from '../access/retry.ts'
import type { RetryingKeyValue } from '../access/retrying-key-value.ts'
import { readPastDeletion } from '../records/deletion-mark.ts'
import { decodePlaces, encodePlaces, type Holder, type PlaceBody } from './place-body.ts'

/** That a register is full is remembered for this long. That it is not full is only a guess, which the write checks. */
const FULL_LIFE = 100
/** A claim follows its place within this time, unless its process is slow or dead. */
const FIRST_CHECK = 1_000
const TRIES = 40
const WAITS = { first: 5, longest: 200 }

interface Copy extends PlaceBody {
  /** null: there is no such key yet. */
  readonly mark: Mark | null
  /** Monotonic. */
  readonly readAt: number
}

const EMPTY: PlaceBody = { group: null, holders: [], emptyAt: null, deletingAt: null }

interface Wanted {
  readonly holders: readonly Holder[]
  readonly limit: number
  readonly group: string | null
  /** Decide on a copy that is not older than 100 ms. */
  readonly isFresh: boolean
  readonly granted: PromiseWithResolvers<ReadonlySet<string>>
}

export interface RegisterParts {
  readonly kv: RetryingKeyValue
  now(): Promise<Instant>
  mono(): number
  /** How long the lease of a holder will last; null: the task does not have that lease, and can no longer get it. */
  leaseOf(holder: Holder): Promise<number | null>
}

export class Register {
  readonly key: string
  readonly #parts: RegisterParts
  #copy: Copy | null = null
  #wanted: Wanted[] = []
  /** Tokens whose places are given up. */
  readonly #given = new Set<string>()
  /** Monotonic, by token: when to ask whether its task still has that lease. */
  #checks = new Map<string, number>()
  #checkedAt = Number.NEGATIVE_INFINITY
  #work: Promise<void> | null = null
  /** Another process wrote it lately: a read is cheaper than a write that is refused. */
  #isShared = false

  constructor(key: string, parts: RegisterParts) {
    this.key = key
    this.#parts = parts
  }

  get isBusy(): boolean {
    return this.#work !== null || this.#given.size > 0
  }

  /** The group's name, as far as this process has read it. */
  get group(): string | null {
    return this.#copy?.group ?? null
  }

  /** Every place counts, also those that a higher limit allowed. */
  isFull(limit: number): boolean {
    return this.#copy !== null && this.#free(this.#copy, limit) <= 0
  }

  /** `isFull`, and it was not read again since. */
  wasJustFull(limit: number): boolean {
    return this.isFull(limit) && this.#parts.mono() - this.#copy!.readAt < FULL_LIFE
  }

  #free({ holders }: Copy, limit: number): number {
    return limit - holders.filter(({ token }) => !this.#given.has(token)).length
  }

  /** How many places seem free. Reads the register if `wanted` are not known to be free, at most every 100 ms. */
  async room(limit: number, wanted: number): Promise<number> {
    const copy = this.#copy
    const isFresh = copy !== null && this.#parts.mono() - copy.readAt < FULL_LIFE
    if (copy !== null && (isFresh || this.#free(copy, limit) >= wanted)) return this.#free(copy, limit)
    // A request for no place still reads the register, and gives up the places of dead processes.
    await this.#want([], limit, null, true)
    return this.#copy === null ? 0 : this.#free(this.#copy, limit)
  }

  /** The tokens that have a place now. */
  take(holders: readonly Holder[], limit: number, group: string | null): Promise<ReadonlySet<string>> {
    return this.#want(holders, limit, group, this.#isShared)
  }

  #want(
    holders: readonly Holder[],
    limit: number,
    group: string | null,
    isFresh: boolean,
  ): Promise<ReadonlySet<string>> {
    const granted = Promise.withResolvers<ReadonlySet<string>>()
    this.#wanted.push({ holders, limit, group, isFresh, granted })
    this.#start()
    return granted.promise
  }

  /** In the background. A place that is never given up is found by a process that meets a full register. */
  give(tokens: readonly string[]): void {
    for (const token of tokens) this.#given.add(token)
    this.#start()
  }

  async finished(): Promise<void> {
    while (this.#work !== null) await this.#work
  }

  #start(): void {
    this.#work ??= Promise.resolve()
      .then(() => this.#run())
      .finally(() => {
        this.#work = null
        if (this.#wanted.length > 0) this.#start()
      })
  }

  async #run(): Promise<void> {
    while (this.#wanted.length > 0 || this.#given.size > 0) {
      const wanted = this.#wanted.splice(0)
      try {
        await this.#round(wanted)
      } catch (error) {
        this.#copy = null
        // They may have been written.
        for (const { holders } of wanted) for (const { token } of holders) this.#given.add(token)
        for (const { granted } of wanted) granted.reject(error)
        // What is left goes with the next request.
        if (this.#wanted.length === 0) return
      }
    }
  }

  async #round(wanted: readonly Wanted[]): Promise<void> {
    let isRead = false
    for (let tries = 0; tries < TRIES; tries++) {
      if (this.#copy === null || (!isRead && this.#mustRead(this.#copy, wanted))) {
        await this.#read()
        isRead = true
      }
      const copy = this.#copy!
      const given = [...this.#given]
      const kept = copy.holders.filter(({ token }) => !this.#given.has(token))
      const { holders, granted, isShort } = placed(kept, wanted)
      if (isShort && (await this.#makeRoom(copy))) continue
      const isSame = kept.length === copy.holders.length && holders.length === kept.length
      const group = copy.group ?? wanted.find((one) => one.group !== null)?.group ?? null
      if (isSame || (await this.#write(copy, group, holders))) {
        for (const token of given) this.#given.delete(token)
        for (const [n, { granted: answer }] of wanted.entries()) answer.resolve(granted[n]!)
        return
      }
      this.#copy = null
      this.#isShared = true
      if (tries > 1) await sleep(fullJitter(WAITS, tries, Math.random()))
    }
    throw new HoldfastError('STORE_UNAVAILABLE', `${this.key} changed during each of ${TRIES} tries`)
  }

  #mustRead({ holders, readAt }: Copy, wanted: readonly Wanted[]): boolean {
    if (wanted.some(({ isFresh }) => isFresh) && this.#parts.mono() - readAt >= FULL_LIFE) return true
    // A place that another process has taken since the register was read.
    return [...this.#given].some((given) => !holders.some(({ token }) => token === given))
  }

  /** True: the register may have room now. */
  async #makeRoom(copy: Copy): Promise<boolean> {
    const now = this.#parts.mono()
    if (now - copy.readAt >= FULL_LIFE) {
      await this.#read()
      return true
    }
    if (now - this.#checkedAt < FULL_LIFE) return false
    this.#checkedAt = now
    const over = await this.#over(copy.holders)
    for (const token of over) this.#given.add(token)
    return over.length > 0
  }

  /** Places whose tasks do not have that lease, and cannot get it any more. */
  async #over(holders: readonly Holder[]): Promise<readonly string[]> {
    const now = this.#parts.mono()
    this.#checks = new Map(holders.map(({ token }) => [token, this.#checks.get(token) ?? now + FIRST_CHECK]))
    const suspects = holders.filter(({ token }) => this.#checks.get(token)! <= now && !this.#given.has(token))
    const over = await Promise.all(
      suspects.map(async (holder) => {
        const left = await this.#parts.leaseOf(holder)
        if (left === null) return [holder.token]
        this.#checks.set(holder.token, now + Math.max(FIRST_CHECK, left))
        return []
      }),
    )
    return over.flat()
  }

  async #read(): Promise<Copy> {
    const { kv, now, mono } = this.#parts
    const readAt = mono()
    const read = async (): Promise<(PlaceBody & { readonly mark: Mark }) | null> => {
      const entry = await kv.get(this.key)
      return entry === null ? null : { ...decodePlaces(this.key, entry.value), mark: entry.mark }
    }
    const before = this.#copy
    const stored = await readPastDeletion(read, now)
    if (before !== null && before.mark === (stored?.mark ?? null)) this.#isShared = false
    this.#copy = stored === null ? { ...EMPTY, mark: null, readAt } : { ...stored, readAt }
    return this.#copy
  }

  async #write({ mark: before }: Copy, group: string | null, holders: readonly Holder[]): Promise<boolean> {
    const { kv, mono, now } = this.#parts
    const readAt = mono()
    const body = { group, holders, emptyAt: holders.length === 0 ? await now() : null, deletingAt: null }
    const mark = await kv.put(this.key, encodePlaces(body), before)
    if (mark === null) return false
    this.#copy = { ...body, mark, readAt }
    return true
  }
}

interface Placed {
  readonly holders: readonly Holder[]
  /** By request: the tokens that have a place. */
  readonly granted: readonly ReadonlySet<string>[]
  /** A request got fewer places than it wants, or there is none left. */
  readonly isShort: boolean
}

const placed = (kept: readonly Holder[], wanted: readonly Wanted[]): Placed => {
  const holders = [...kept]
  let isShort = false
  const granted = wanted.map(({ holders: wants, limit }) => {
    const tokens = new Set<string>()
    for (const holder of wants) {
      if (holders.length >= limit) break
      holders.push(holder)
      tokens.add(holder.token)
    }
    isShort ||= tokens.size < wants.length || (wants.length === 0 && holders.length >= limit)
    return tokens
  })
  return { holders, granted, isShort }
}
