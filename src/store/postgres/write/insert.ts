/** Inserts tasks with their keys in one transaction: ours or the caller's. */
import { HoldfastError } from '../../../core/errors.ts'
import { type KeyRecord, keyIsLive } from '../../../core/idempotency.ts'
import type { Instant, TaskRecord } from '../../../core/task.ts'
import { type Cell, COLUMNS_WITH_HISTORY, encodeFresh, encodeWhole, FRESH_COLUMNS, isFresh } from '../../sql/rows.ts'
import type { Inserted, Insertion } from '../../store.ts'
import { CLOCK } from '../claim/claimer.ts'
import type { Executor } from '../connection.ts'
import { findKeys, getTasks } from '../read/query.ts'
import { bindRows } from './arrays.ts'
import { insertJournals } from './journal.ts'

type Keyed = Insertion & { readonly key: KeyRecord }

const FRESH = FRESH_COLUMNS.split(', ')
const WHOLE = COLUMNS_WITH_HISTORY.split(', ')

/** The target of an insert, and the queues that it notifies: a separate NOTIFY would cost another round trip. */
export interface Into {
  readonly schema: string
  readonly channel: string
  /** The queues to notify. */
  readonly queues: readonly string[]
  /** The caller's estimate of the server's time; null if it has none. */
  readonly expected: Instant | null
}

/** The estimate may be off by the round trip and by a wait for a connection. */
const TOLERANCE = 1_000

const SERVER_CLOCK = `clock as materialized (select floor(extract(epoch from clock_timestamp()) * 1000)::bigint as now)`

/** Throws if the estimate was wrong: the statement has written nothing, because the stamps of the tasks do not fit the server's clock. */
const checkTime = (now: Instant, { expected }: Into): void => {
  if (expected === null || Math.abs(now - expected) <= TOLERANCE) return
  throw new HoldfastError(
    'STORE_CONFLICT',
    `the server's clock is ${now - expected} ms away from where it was taken to be`,
    {
      now,
      expected,
    },
  )
}

const texts = new Map<string, string>()

/** Statement texts are shared by all batches that vary in the same columns. Resolves with the ids if `ending` returns them. */
const insertRows = async (
  executor: Executor,
  into: Into,
  { columns, rows, ending }: { readonly columns: readonly string[]; readonly rows: readonly Cell[][]; ending: string },
): Promise<string[]> => {
  if (rows.length === 0) return []
  const { schema, channel, queues, expected } = into
  const batch = bindRows(columns, rows)
  const notifies = queues.length > 0
  const name = `${schema} ${columns.length} ${batch.name} ${notifies} ${ending}`
  let text = texts.get(name)
  if (text === undefined) {
    const words = batch.words()
    const notices = notifies
      ? ` cross join (select count(pg_notify('${channel}', queue)) from unnest($${columns.length + 2}::text[]) as q(queue)) as notified`
      : ''
    const isInTime = `where ${words.free}::bigint is null or abs(clock.now - ${words.free}::bigint) <= ${TOLERANCE}`
    text = `
      with ${SERVER_CLOCK}, written as (
        insert into ${schema}.task (${columns.join(', ')})
        select ${columns.map(words.of).join(', ')} from ${words.table} cross join clock${notices} ${isInTime} ${ending}
      ) ${ending === '' ? 'select now from clock' : 'select now, id from clock left join written on true'}`
    texts.set(name, text)
  }
  const told = await executor.query(text, [...batch.values, expected, ...(notifies ? [queues] : [])])
  checkTime(told[0]![0] as Instant, into)
  return told.flatMap(([, id]) => (id === null || id === undefined ? [] : [id as string]))
}

/** Returns the ids that were free. */
const insertTasks = async (executor: Executor, into: Into, tasks: readonly TaskRecord[]): Promise<Set<string>> => {
  const ending = 'on conflict (id) do nothing returning id'
  const fresh = tasks.filter(isFresh).map(encodeFresh)
  const whole = fresh.length === tasks.length ? [] : tasks.filter((task) => !isFresh(task)).map(encodeWhole)
  const inserted = [
    ...(await insertRows(executor, into, { columns: FRESH, rows: fresh, ending })),
    ...(await insertRows(executor, into, { columns: WHOLE, rows: whole, ending })),
  ]
  const created = new Set(inserted)
  await insertJournals(
    executor,
    into.schema,
    tasks.filter(({ id, hasJournal }) => hasJournal && created.has(id)),
  )
  return created
}

const CREATED: Inserted = { outcome: 'created' }
const UNIQUE_VIOLATION = '23505'

/**
 * Inserts tasks without keys, each statement as a separate transaction. It assumes that all ids are free, and falls back to
 * insertWithCare if one is taken: checking and returning every id took a quarter of an insert.
 */
export const insertKeyless = async (
  executor: Executor,
  into: Into,
  tasks: readonly TaskRecord[],
): Promise<Inserted[]> => {
  if (!tasks.every(isFresh)) return insertWithCare(executor, into, tasks)
  try {
    await insertRows(executor, into, { columns: FRESH, rows: tasks.map(encodeFresh), ending: '' })
    return tasks.map(() => CREATED)
  } catch (error) {
    if ((error as { readonly code?: unknown }).code !== UNIQUE_VIOLATION) throw error
    return insertWithCare(executor, into, tasks)
  }
}

/** Also works inside a transaction, which a taken id must not abort. */
const insertWithCare = async (executor: Executor, into: Into, tasks: readonly TaskRecord[]): Promise<Inserted[]> => {
  const created = await insertTasks(executor, into, tasks)
  if (created.size === tasks.length) return tasks.map(() => CREATED)
  // The id is taken, or appears twice in this batch: the first is created, the second finds it.
  const there = await getTasks(
    executor,
    into.schema,
    tasks.map(({ id }) => id),
  )
  return tasks.map(({ id }, i): Inserted => (created.delete(id) ? CREATED : { outcome: 'clash', task: there[i]! }))
}

const insertKeyed = async (
  executor: Executor,
  asked: Into,
  insertions: readonly Keyed[],
  now: Instant | null,
): Promise<Inserted[]> => {
  const at = now ?? ((await executor.query(`with ${CLOCK} select now from clock`, [null]))[0]![0] as number)
  checkTime(at, asked)
  // Checked only once, because waiting for a key of another transaction may take a while.
  const into = { ...asked, expected: null }
  const results: Inserted[] = []
  // In the order of the keys, so that two batches with the same keys wait for each other instead of deadlocking.
  const inOrder = [...insertions.entries()].sort(([, a], [, b]) =>
    a.key.key < b.key.key ? -1 : a.key.key > b.key.key ? 1 : 0,
  )
  const taken = await takeKeys(executor, into.schema, insertions)
  const mine = inOrder.filter(([, { key }]) => taken.get(key.key) === key.taskId)
  const created = await insertTasks(
    executor,
    into,
    mine.map(([, { task }]) => task),
  )
  for (const [i, insertion] of inOrder) {
    const { task, key } = insertion
    const isTaken = taken.get(key.key) === key.taskId
    if (isTaken && created.delete(task.id)) results[i] = { outcome: 'created' }
    else results[i] = await insertOne(executor, into, insertion, { now: at, isTaken: isTaken && taken.delete(key.key) })
  }
  return results
}

/** Takes the keys that are free. Returns their task ids by key. */
const takeKeys = async (
  executor: Executor,
  schema: string,
  insertions: readonly Keyed[],
): Promise<Map<string, string>> => {
  const first = new Map<string, KeyRecord>()
  for (const { key } of insertions) if (!first.has(key.key)) first.set(key.key, key)
  const keys = [...first.values()].sort((a, b) => (a.key < b.key ? -1 : 1))
  const rows = await executor.query(
    `insert into ${schema}.key (key, task_id, hash, expires_at, exact) select * from unnest($1::text[], $2::uuid[], $3::text[], $4::bigint[], $5::boolean[]) on conflict (key) do nothing returning key, task_id`,
    [
      keys.map(({ key }) => key),
      keys.map(({ taskId }) => taskId),
      keys.map(({ hash }) => hash),
      keys.map(({ expiresAt }) => expiresAt),
      keys.map(({ exact }) => exact),
    ],
  )
  return new Map(rows.map(([key, taskId]) => [key as string, taskId as string]))
}

/** Handles a key or an id that is taken. This is rare, so it goes one by one. The lock on the key row makes other inserts wait. */
const insertOne = async (
  executor: Executor,
  into: Into,
  { task, key, replaces }: Keyed,
  { now, isTaken }: { readonly now: Instant; readonly isTaken: boolean },
): Promise<Inserted> => {
  const { schema } = into
  // A key that this call has just taken has no task yet.
  const held = isTaken ? null : await lockKey(executor, schema, key.key)
  if (held && held.key.taskId !== replaces && keyIsLive(held.key, held.task !== null, now))
    return { outcome: 'existing', ...held }
  const [clash] = await getTasks(executor, schema, [task.id])
  if (clash) {
    if (isTaken)
      await executor.query(`delete from ${schema}.key where key = $1 and task_id = $2`, [key.key, key.taskId])
    return { outcome: 'clash', task: clash }
  }
  await executor.query(
    `insert into ${schema}.key (key, task_id, hash, expires_at, exact) values ($1, $2, $3, $4, $5)
     on conflict (key) do update set task_id = excluded.task_id, hash = excluded.hash, expires_at = excluded.expires_at, exact = excluded.exact, orphan = false`,
    [key.key, key.taskId, key.hash, key.expiresAt, key.exact],
  )
  await insertTasks(executor, into, [task])
  return { outcome: 'created' }
}

/** The key as it stands now. No other session changes it until this transaction ends. */
const lockKey = async (
  executor: Executor,
  schema: string,
  key: string,
): Promise<{ key: KeyRecord; task: TaskRecord | null } | null> => {
  const [held] = await findKeys(executor, schema, [key], ' for update of k')
  if (held === undefined || held.task !== null) return held ?? null
  // While this waited for the lock, the key may have passed to a task that the statement could not see yet.
  const [task] = await getTasks(executor, schema, [held.key.taskId])
  return { key: held.key, task: task ?? null }
}

/** Inserts tasks with and without keys and returns the results in order. Must run inside a transaction. */
export const insertAll = async (
  executor: Executor,
  into: Into,
  insertions: readonly Insertion[],
  now: Instant | null,
): Promise<Inserted[]> => {
  const results: Inserted[] = new Array(insertions.length)
  const keyed = insertions.flatMap(({ key, ...rest }, at) => (key === undefined ? [] : [{ ...rest, at, key }]))
  const keyless = insertions.flatMap(({ task, key }, at) => (key === undefined ? [{ at, task }] : []))
  if (keyless.length > 0) {
    const inserted = await insertWithCare(
      executor,
      into,
      keyless.map(({ task }) => task),
    )
    for (const [i, { at }] of keyless.entries()) results[at] = inserted[i]!
  }
  if (keyed.length > 0) {
    const inserted = await insertKeyed(executor, into, keyed, now)
    for (const [i, { at }] of keyed.entries()) results[at] = inserted[i]!
  }
  return results
}
