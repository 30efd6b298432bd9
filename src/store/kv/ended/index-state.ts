/** One small object: whether the index is complete, and until when one process has the right to maintain it. */
import type { Instant } from '../../../core/task.ts'
import type { Mark } from '../access/key-value.ts'
import type { RetryingKeyValue } from '../access/retrying-key-value.ts'
import { corrupt, newNonce } from '../records/bodies.ts'
import { TASKS } from '../records/names.ts'
import { INDEX_STATE } from './segment-names.ts'

const VERSION = 1
/** How soon to check again whether the index has become complete. */
const ASK_EVERY = 30_000

interface State {
  readonly version: number
  readonly isComplete: boolean
  /** Until then one process may merge segments or build the index. */
  readonly takenUntil: Instant
}

interface StoredState extends State {
  readonly mark: Mark
}

/** The right to maintain the index for a limited time. */
export interface MaintenanceLease {
  readonly isComplete: boolean
  /** False: another process has the right now. */
  renew(takenUntil: Instant, isComplete: boolean): Promise<boolean>
}

export class IndexState {
  readonly #kv: RetryingKeyValue
  readonly #mono: () => number
  #isComplete = false
  #askedAt = Number.NEGATIVE_INFINITY
  #opening: Promise<void> | null = null
  /** The store had tasks before it had an index. */
  #isOld = false

  constructor(kv: RetryingKeyValue, mono: () => number) {
    this.#kv = kv
    this.#mono = mono
  }

  /** While the index is incomplete, queries for ended tasks read all tasks. */
  async isComplete(): Promise<boolean> {
    if (this.#isComplete || this.#mono() - this.#askedAt < ASK_EVERY) return this.#isComplete
    const state = await this.#read()
    this.#askedAt = this.#mono()
    this.#isComplete = state?.isComplete ?? false
    return this.#isComplete
  }

  /** Before the first write of a process. In a store without tasks the index is complete from the start. */
  async open(): Promise<void> {
    if (this.#isComplete || this.#isOld) return
    this.#opening ??= this.#open().finally(() => {
      this.#opening = null
    })
    await this.#opening
  }

  async #open(): Promise<void> {
    if (await this.isComplete()) return
    const isNew = (await this.#read()) === null && (await this.#kv.list(TASKS, { limit: 1 })).length === 0
    if (!isNew) {
      this.#isOld = true
      return
    }
    this.#askedAt = Number.NEGATIVE_INFINITY
    await this.#kv.create(INDEX_STATE, encode({ version: VERSION, isComplete: true, takenUntil: 0 }))
    await this.isComplete()
  }

  /** null: another process maintains the index, or has just finished. */
  async take(now: Instant, takenUntil: Instant): Promise<MaintenanceLease | null> {
    const state = await this.#read()
    if (state !== null && state.takenUntil > now) return null
    let mark = state?.mark ?? null
    const write = async (next: Omit<State, 'version'>): Promise<boolean> => {
      const text = encode({ version: VERSION, ...next })
      mark = mark === null ? await this.#kv.create(INDEX_STATE, text) : await this.#kv.update(INDEX_STATE, text, mark)
      return mark !== null
    }
    const isComplete = state?.isComplete ?? false
    if (!(await write({ isComplete, takenUntil }))) return null
    return {
      isComplete,
      renew: async (until, isNowComplete) => {
        const isHeld = mark !== null && (await write({ isComplete: isNowComplete, takenUntil: until }))
        if (isHeld && isNowComplete) this.#isComplete = true
        return isHeld
      },
    }
  }

  async #read(): Promise<StoredState | null> {
    const entry = await this.#kv.get(INDEX_STATE)
    if (entry === null) return null
    try {
      const { version, isComplete, takenUntil } = JSON.parse(entry.value) as State
      // An index of another version counts as incomplete.
      return { version, isComplete: isComplete && version === VERSION, takenUntil, mark: entry.mark }
    } catch {
      throw corrupt(INDEX_STATE, 'is not what Holdfast writes')
    }
  }
}

const encode = (state: State): string => JSON.stringify({ nonce: newNonce(), ...state })
