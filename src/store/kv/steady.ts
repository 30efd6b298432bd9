/** Repeats what met a lost reply or a failing server, and recognises a write of its own that took effect the first time. */
import { type HoldfastError, isContactLost } from '../../core/errors.ts'
import type { Instant } from '../../core/task.ts'
import type { Entry, KeyValue, ListRange, Mark } from './key-value.ts'
import { Lanes, type Turn } from './lanes.ts'

const TRIES = 20
const FIRST_WAIT = 40
const LONGEST_WAIT = 1_000
/** After this long no further try is begun: the caller's own patience counts from there. */
const PATIENCE = 12_000

/**
 * A value must be unlike any other that was ever written to its key: that is how it is recognised. Whoever writes the same
 * thing twice puts something random into it.
 */
export class SteadyKeyValue implements Omit<KeyValue, 'listWritten' | 'longestHint'> {
  readonly address: string
  readonly longText: number
  readonly longestHint: number | undefined
  readonly lanes = new Lanes({ start: 32, most: 64 })
  readonly #kv: KeyValue

  constructor(kv: KeyValue) {
    this.#kv = kv
    this.address = kv.address
    this.longText = kv.longText
    this.longestHint = kv.longestHint
  }

  get(key: string): Promise<Entry | null> {
    return this.#repeat(() => this.#kv.get(key))
  }

  create(key: string, value: string, turn: Turn = 'last'): Promise<Mark | null> {
    return this.#write(key, value, null, () => this.#kv.create(key, value), turn)
  }

  update(key: string, value: string, mark: Mark, turn: Turn = 'last'): Promise<Mark | null> {
    return this.#write(key, value, mark, () => this.#kv.update(key, value, mark), turn)
  }

  async delete(keys: readonly string[]): Promise<void> {
    if (keys.length > 0) await this.#repeat(() => this.#kv.delete(keys))
  }

  list(prefix: string, range: ListRange): Promise<readonly string[]> {
    return this.#repeat(() => this.#kv.list(prefix, range))
  }

  /** null: this place cannot tell. One that breaks off is begun anew by whoever asked. */
  listWritten(prefix: string, since: Instant): AsyncIterable<readonly string[]> | null {
    return this.#kv.listWritten?.(prefix, since) ?? null
  }

  now(): Promise<{ at: Instant; uncertainty: number }> {
    return this.#repeat(() => this.#kv.now())
  }

  close(): Promise<void> {
    return this.#kv.close()
  }

  /** `before`: the mark under which the key is written; null: it must not be there. */
  async #write(
    key: string,
    value: string,
    before: Mark | null,
    write: () => Promise<Mark | null>,
    turn: Turn,
  ): Promise<Mark | null> {
    let isUnclear = false
    return this.#repeat(async () => {
      if (isUnclear) {
        const found = await this.#kv.get(key)
        if (found?.value === value) return found.mark
        if ((found?.mark ?? null) !== before) return null
      }
      try {
        const mark = await write()
        if (mark !== null || !isUnclear) return mark
      } catch (error) {
        isUnclear ||= isContactLost(error)
        throw error
      }
      // Refused, perhaps because an earlier try of ours was written after all.
      const found = await this.#kv.get(key)
      return found?.value === value ? found.mark : null
    }, turn)
  }

  async #repeat<T>(call: () => Promise<T>, turn: Turn = 'last'): Promise<T> {
    // From the first failure on: to wait for a lane is no trouble.
    let troubledAt: number | null = null
    for (let tries = 1; ; tries++) {
      try {
        return await this.lanes.run(call, turn === 'last' && tries > 1 ? 'next' : turn)
      } catch (error) {
        if (!isContactLost(error)) throw error
        if (!isConflict(error)) this.lanes.failed()
        troubledAt ??= performance.now()
        if (tries === TRIES || performance.now() - troubledAt > PATIENCE) throw error
        await pause(Math.random() * Math.min(FIRST_WAIT * 2 ** tries, LONGEST_WAIT))
      }
    }
  }
}

/** Two met, and the server wants one of them to come again: no sign that it has too much to do. */
const isConflict = (error: unknown): boolean => (error as HoldfastError).details['isConflict'] === true

export const pause = (delay: number): Promise<void> => new Promise((done) => setTimeout(done, delay))
