/** A task as a key-value store holds it, put together: large values and parts of the journal lie under keys of their own. */
import type { JournalEntry, TaskRecord } from '../../src/core/task.ts'
import { decodeTask, isChunk } from '../../src/store/kv/records/bodies.ts'

/** null: the key holds no task. */
export const wholeTask = (
  key: string,
  text: string,
  valueUnder: (key: string) => string | undefined,
): TaskRecord | null => {
  const body = decodeTask(key, text)
  if (!('task' in body)) return null
  const parts: JournalEntry[] = []
  const fields: Record<string, string> = {}
  for (const [name, large] of Object.entries(body.largeValues)) {
    const value = valueUnder(large.key)
    if (value === undefined) continue
    if (isChunk(name)) parts.push(...(JSON.parse(value) as JournalEntry[]))
    else fields[name] = value
  }
  const { task } = body
  return parts.length === 0 && Object.keys(fields).length === 0
    ? task
    : { ...task, ...fields, journal: [...parts, ...task.journal].sort((a, b) => a.n - b.n) }
}
