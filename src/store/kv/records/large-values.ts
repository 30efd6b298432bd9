/** Large inputs, outputs and progress under keys of their own, so that a move does not write them again. */
import type { JournalEntry, TaskRecord } from '../../../core/task.ts'
import type { LargeValueAccess } from '../access/key-value.ts'
import type { RetryingKeyValue } from '../access/retrying-key-value.ts'
import { Discards } from '../cleanup/discards.ts'
import { corrupt, hashOf, isChunk, LARGE_FIELDS, type LargeValues, newNonce, type TaskBody } from './bodies.ts'
import { splitJournal } from './journal-parts.ts'
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

  /** The task with its large values in place, but without the parts of its journal; null: a value is missing. */
  async load({ task, largeValues }: TaskBody): Promise<TaskRecord | null> {
    const names = LARGE_FIELDS.filter((field) => largeValues[field] !== undefined)
    const texts = await this.#texts(largeValues, names)
    if (texts === null) return null
    return names.length === 0 ? task : { ...task, ...Object.fromEntries(names.map((name, i) => [name, texts[i]])) }
  }

  /** All entries, of a task that was read; null: a part of the journal is missing. */
  async journalOf({ task: { journal }, largeValues }: TaskBody): Promise<readonly JournalEntry[] | null> {
    const texts = await this.#texts(largeValues, Object.keys(largeValues).filter(isChunk))
    if (texts === null) return null
    if (texts.length === 0) return journal
    const entries = [...texts.flatMap((text) => JSON.parse(text) as JournalEntry[]), ...journal]
    return entries.sort((a, b) => a.n - b.n)
  }

  async #texts(largeValues: LargeValues, names: readonly string[]): Promise<readonly string[] | null> {
    if (names.length === 0) return []
    const texts = await Promise.all(
      names.map(async (name) => {
        const { key, hash } = largeValues[name]!
        const text = await this.#values.get(key)
        if (text !== null && hashOf(text) !== hash) throw corrupt(key, 'is not the text that was written')
        return text
      }),
    )
    return texts.some((text) => text === null) ? null : (texts as string[])
  }

  /** Writes the large values of a task, except those that `before` already has. Returns the task as its body has it. */
  async save(task: TaskRecord, before?: TaskBody): Promise<TaskBody> {
    const largeValues: Record<string, { key: string; hash: string }> = {}
    const nonce = newNonce()
    const put = async (name: string, text: string): Promise<void> => {
      const value = { key: largeValueKey(task.id, nonce, name), hash: hashOf(text) }
      await this.#values.create(value.key, text)
      largeValues[name] = value
    }
    const saveField = async (field: (typeof LARGE_FIELDS)[number]): Promise<void> => {
      const text = task[field]
      if (text === null || text.length <= this.#inlineLimit / 4) return
      if (Buffer.byteLength(text) <= this.#inlineLimit) return
      const saved = before?.largeValues[field]
      if (saved !== undefined && before?.task[field] === text) largeValues[field] = saved
      else await put(field, text)
    }
    const isSameGeneration = before?.task.generation === task.generation
    for (const name in before?.largeValues)
      if (isChunk(name) && isSameGeneration) largeValues[name] = before!.largeValues[name]!
    const { parts, rest } = splitJournal(task.journal)
    await Promise.all([
      ...LARGE_FIELDS.map(saveField),
      ...parts.map(([name, entries]) => put(name, JSON.stringify(entries))),
    ])
    return { task: parts.length === 0 ? task : { ...task, journal: rest }, largeValues }
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
