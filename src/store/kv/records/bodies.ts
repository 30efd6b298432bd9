/** The stored texts: tasks, tombstones of removed tasks, and idempotency keys. */
import { createHash, randomBytes } from 'node:crypto'
import { HoldfastError } from '../../../core/errors.ts'
import type { KeyRecord } from '../../../core/idempotency.ts'
import type { Instant, TaskRecord } from '../../../core/task.ts'

/** Fields of a task that may be large. */
export const LARGE_FIELDS = ['input', 'output', 'progress'] as const

/** Parts of the journal, named by the number of their first entry. */
export const chunkName = (n: number): string => `journal-${n}`
export const isChunk = (name: string): boolean => name.startsWith('journal-')

/** A value under a key of its own, written once. */
interface LargeValue {
  readonly key: string
  readonly hash: string
}

/** By the field that it belongs to, or by the name of a part of the journal. */
export type LargeValues = Readonly<Record<string, LargeValue>>

/** In the stored text, fields with a large value are empty, and the journal has only the entries that are in none of its parts. */
export interface TaskBody {
  readonly task: TaskRecord
  readonly largeValues: LargeValues
}

interface Written {
  /** Counts every write of the task's key, heartbeats included. A hint names the write that it was made for. */
  readonly sequence: number
  /** The insert that made the task. null: none did, or one of an earlier build without an idempotency key. */
  readonly insertId: string | null
}

export interface LiveBody extends Written, TaskBody {
  /** null: the task has ended. */
  readonly hint: string | null
  /** The keys of the registers in which the running task has a place, so that the process that ends the run gives them up. */
  readonly places: readonly string[]
}

/** Stays in place of a removed task, so that a late writer learns that the task is gone. Only a new task may replace it. */
export interface TombstoneBody extends Written {
  readonly removedAt: Instant
  readonly idempotencyKey: string | null
  /** The idempotency key ended with the task. */
  readonly endKey: boolean
  /** There was only a hint, and its writer never wrote the task. */
  readonly isEmpty: boolean
  /** The deletion mark: a process is about to delete this key. */
  readonly deletingAt: Instant | null
}

/**
 * `active`: it stands for its task. The task is in the body, so that any process can finish an insert whose writer died.
 * `detached`: its task was removed and the key lives on until it expires. `void`: it stands for nothing.
 */
export interface KeyBody {
  readonly insertId: string
  readonly state: 'active' | 'detached' | 'void'
  readonly record: KeyRecord
  readonly insertion: TaskBody | null
  readonly deletingAt: Instant | null
}

const processNonce = randomBytes(9).toString('base64url')
let nonces = 0

/** Unique in all processes. A counter is much cheaper than random bytes for every write. */
export const newNonce = (): string => `${processNonce}${(++nonces).toString(36)}`

export const hashOf = (text: string): string => createHash('sha256').update(text).digest('base64url')

/** The nonce makes every write different, also with equal content. */
const withNonce = (body: object): string => JSON.stringify({ nonce: newNonce(), ...body })

const taskText = ({ task, largeValues }: TaskBody): object => {
  const { mark: _, ...rest } = task
  return Object.keys(largeValues).length === 0
    ? { task: rest }
    : { task: { ...rest, ...emptied(largeValues) }, largeValues }
}

const emptied = (largeValues: LargeValues): object =>
  Object.fromEntries(LARGE_FIELDS.flatMap((field) => (largeValues[field] === undefined ? [] : [[field, '']])))

export const encodeLive = ({ sequence, insertId, hint, places, ...body }: LiveBody): string =>
  withNonce({ sequence, insertId, hint, ...(places.length === 0 ? null : { places }), ...taskText(body) })

export const encodeTombstone = (body: TombstoneBody): string => withNonce(body)

export const encodeKey = ({ insertion, ...body }: KeyBody): string =>
  withNonce({ ...body, insertion: insertion === null ? null : taskText(insertion) })

const parse = (key: string, text: string): Record<string, unknown> => {
  try {
    const body: unknown = JSON.parse(text)
    if (typeof body === 'object' && body !== null) return body as Record<string, unknown>
  } catch {
    // Reported below.
  }
  throw corrupt(key, 'is not what Holdfast writes')
}

export const corrupt = (key: string, what: string): HoldfastError =>
  new HoldfastError('STORE_CORRUPT', `${key} ${what}`, { key })

export const decodeTask = (key: string, text: string): LiveBody | TombstoneBody => {
  const body = parse(key, text)
  if (typeof body['removedAt'] === 'number') return body as unknown as TombstoneBody
  const task = body['task'] as TaskRecord | undefined
  if (typeof task?.id !== 'string' || typeof task.revision !== 'number') throw corrupt(key, 'holds no task')
  return {
    ...(body as unknown as LiveBody),
    places: (body['places'] as readonly string[] | undefined) ?? [],
    task: withLaterFields(task),
    largeValues: (body['largeValues'] as LargeValues | undefined) ?? {},
  }
}

/** Fills in fields that were added to the record after this task was written. */
const withLaterFields = (task: TaskRecord): TaskRecord => {
  const { lease, outputError, group, journal } = task
  const isCurrent = outputError !== undefined && group !== undefined && journal !== undefined
  if (isCurrent && (lease === null || lease.ttl !== undefined)) return task
  return {
    ...task,
    outputError: outputError ?? null,
    group: group ?? null,
    parked: task.parked ?? null,
    generation: task.generation ?? 0,
    hasJournal: task.hasJournal ?? false,
    journal: journal ?? [],
    lease: lease && { ...lease, ttl: lease.ttl ?? lease.expiresAt - lease.claimedAt },
  }
}

export const decodeKey = (key: string, text: string): KeyBody => {
  const body = parse(key, text) as unknown as KeyBody
  if (typeof body.record?.key !== 'string') throw corrupt(key, 'holds no idempotency key')
  const { insertion } = body
  if (insertion === null) return body
  return {
    ...body,
    insertion: { ...insertion, task: withLaterFields(insertion.task), largeValues: insertion.largeValues ?? {} },
  }
}
