/** The journals of tasks: their rows are written, read and removed together with the rows of the tasks. */
import type { JournalEntry, TaskRecord } from '../../../core/task.ts'
import { JOURNAL_MARK, readJson } from '../../sql/rows.ts'
import type { Executor, Value } from '../connection.ts'

/** Whose entries, and which. */
export interface Entries {
  readonly id: string
  readonly journal: readonly JournalEntry[]
}

const SEPARATOR = '\x01'

/** Three parameters: ids, numbers, texts. JSON has no control characters. */
export const entryValues = (some: readonly Entries[]): Value[] => {
  const rows = some.flatMap(({ id, journal }) => journal.map((entry) => [id, entry] as const))
  return [
    rows.map(([id]) => id),
    rows.map(([, { n }]) => n),
    rows.map(([, entry]) => JSON.stringify(entry)).join(SEPARATOR),
  ]
}

/** A table `j` of the entries, from the parameters that begin with the n-th. */
const entryTable = (n: number): string =>
  `unnest($${n}::uuid[], $${n + 1}::integer[], string_to_array($${n + 2}::text, E'\\x01')) as j(id, n, entry)`

/** Inserts the entries of the tasks in `written`, a table with the columns id and options. */
export const appendEntries = (schema: string, written: string, n: number): string => `
  insert into ${schema}.journal (task_id, generation, n, entry)
  select j.id, coalesce((w.options::json ->> 'generation')::integer, 0), j.n, j.entry from ${entryTable(n)} join ${written} w on w.id = j.id`

/** For tasks that were made elsewhere: the caller's transaction has just inserted their rows. */
export const insertJournals = async (
  executor: Pick<Executor, 'query'>,
  schema: string,
  tasks: readonly TaskRecord[],
): Promise<void> => {
  if (tasks.length === 0) return
  const generations = new Map(tasks.map(({ id, generation }) => [id, generation]))
  const [ids, numbers, texts] = entryValues(tasks)
  await executor.query(
    `insert into ${schema}.journal (task_id, generation, n, entry) select j.id, g.generation, j.n, j.entry from ${entryTable(1)} join unnest($4::uuid[], $5::integer[]) as g(id, generation) on g.id = j.id`,
    [ids!, numbers!, texts!, [...generations.keys()], [...generations.values()]],
  )
}

/** The journals of tasks in `gone`, a table with the columns id and options, are removed with them. */
export const removeEntries = (schema: string, gone: string): string =>
  `delete from ${schema}.journal j using ${gone} g where strpos(g.options, '${JOURNAL_MARK}') > 0 and j.task_id = g.id`

/** The same tasks with their journals, where they have one. */
export const withJournals = async <T extends TaskRecord | null>(
  executor: Pick<Executor, 'query'>,
  schema: string,
  tasks: readonly T[],
): Promise<readonly T[]> => {
  const ids = tasks.flatMap((task) => (task?.hasJournal ? [task.id] : []))
  if (ids.length === 0) return tasks
  const rows = await executor.query(
    `select task_id, generation, entry from ${schema}.journal where task_id = any($1::uuid[]) order by task_id, n`,
    [ids],
  )
  const entries = new Map<string, JournalEntry[]>(ids.map((id) => [id, []]))
  const generations = new Map(tasks.flatMap((task) => (task === null ? [] : [[task.id, task.generation]])))
  for (const [id, generation, entry] of rows as [string, number, string][]) {
    const read = generations.get(id) === Number(generation) ? readJson<JournalEntry | null>(entry, null) : null
    if (read !== null) entries.get(id)!.push(read)
  }
  return tasks.map((task) => (task?.hasJournal ? { ...task, journal: entries.get(task.id)! } : task))
}
