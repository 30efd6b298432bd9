/** Large inputs, outputs and progress under keys of their own, so that a move does not write them again. */
import type { TaskRecord } from '../../../core/task.ts'
import type { LargeValueAccess } from '../access/key-value.ts'
import type { RetryingKeyValue } from '../access/retrying-key-value.ts'
import { Discards } from '../cleanup/discards.ts'
import { corrupt, hashOf, LARGE_FIELDS, type LargeValues, newNonce, type TaskBody } from './bodies.ts'
import { largeValueKey } from './names.ts'

export class LargeValueStore {
  readonly #inlineLimit: number
  readonly #values: Pick<LargeValueAccess, 'get' | 'create'>
  readonly #discards: Discards

  constructor(kv: RetryingKeyValue, discards: Discards) {
    const { large } = kv
    this.#inlineLimit = kv.inlineLimit
    this.#values = large ?? {
      get: async (key) => (await kv.get(key))?.value ?? null,
      create: async (key, text) => void (await kv.create(key, text)),
    }
    // Where large values are ordinary keys, their deletes share requests with others.
    this.#discards = large === null ? discards : new Discards((keys) => large.delete(keys))
  }

  /** The task with its large values in place; null: one of them is missing. */
  async load({ task, largeValues }: TaskBody): Promise<TaskRecord | null> {
    const texts = await Promise.all(
      LARGE_FIELDS.map(async (field) => {
        const value = largeValues[field]
        if (value === undefined) return null
        const text = await this.#values.get(value.key)
        if (text === null) return undefined
        if (hashOf(text) !== value.hash) throw corrupt(value.key, 'is not the text that was written')
        return [field, text] as const
      }),
    )
    if (texts.includes(undefined)) return null
    const large = texts.filter((one) => one !== null && one !== undefined)
    return large.length === 0 ? task : { ...task, ...Object.fromEntries(large) }
  }

  /** Writes the large values of a task, except those that `before` already has. */
  async save(task: TaskRecord, before?: TaskBody): Promise<LargeValues> {
    const largeValues: Record<string, { key: string; hash: string }> = {}
    const nonce = newNonce()
    await Promise.all(
      LARGE_FIELDS.map(async (field) => {
        const text = task[field]
        if (text === null || text.length <= this.#inlineLimit / 4) return
        if (Buffer.byteLength(text) <= this.#inlineLimit) return
        const saved = before?.largeValues[field]
        if (saved !== undefined && before?.task[field] === text) {
          largeValues[field] = saved
          return
        }
        const value = { key: largeValueKey(task.id, nonce, field), hash: hashOf(text) }
        await this.#values.create(value.key, text)
        largeValues[field] = value
      }),
    )
    return largeValues
  }

  /** Discards the values that `still` does not use. */
  discard(largeValues: LargeValues, still: LargeValues = {}): void {
    const used = new Set(Object.values(still).map(({ key }) => key))
    const keys = Object.values(largeValues).map(({ key }) => key)
    this.#discards.add(keys.filter((key) => !used.has(key)))
  }

  /** All discarded values are deleted. */
  finished(): Promise<void> {
    return this.#discards.finished()
  }
}
