/** What stands under the keys, as text: tasks, the marks of removed ones, and idempotency keys with what they stand for. */
import { createHash, randomBytes } from 'node:crypto'
import { HoldfastError } from '../../core/errors.ts'
import type { KeyRecord } from '../../core/idempotency.ts'
import type { Instant, TaskRecord } from '../../core/task.ts'

/** Fields that may be long. */
export const LONG_FIELDS = ['input', 'output', 'progress'] as const
type LongField = (typeof LONG_FIELDS)[number]

/** A long text that is kept under a key of its own, written once. */
interface Aside {
  readonly key: string
  readonly hash: string
}

export type Asides = Readonly<Partial<Record<LongField, Aside>>>

/** A task without its long texts. */
export interface TaskBody {
  readonly task: TaskRecord
  readonly asides: Asides
}

/** Counts every write of a task's key, also heartbeats; a hint names the write that it was made for. */
interface Written {
  readonly sequence: number
  /** The idempotency key's record that it was made from. */
  readonly birth: string | null
}

export interface LivingBody extends Written, TaskBody {
  /** Where a look finds it; null: it has ended. */
  readonly hint: string | null
}

/** Nothing may be written over it but a new task: that is how a writer that comes late learns that the task is gone. */
export interface BuriedBody extends Written {
  readonly buriedAt: Instant
  /** Its idempotency key, and whether that ended with it. */
  readonly idempotencyKey: string | null
  readonly endKey: boolean
  /** There never was a task: only a hint, whose writer did not come. */
  readonly isEmpty: boolean
  readonly sealedAt: Instant | null
}

/**
 * `standing`: for its task, which is in the body so that anyone can finish an insert whose writer died. `removed`: its task is gone
 * and it lives out its own time. `void`: for nothing.
 */
export interface KeyBody {
  readonly birth: string
  readonly state: 'standing' | 'removed' | 'void'
  readonly record: KeyRecord
  readonly made: TaskBody | null
  readonly sealedAt: Instant | null
}

const ofThisProcess = randomBytes(9).toString('base64url')
let nonces = 0

/** Never the same twice, here or elsewhere. Chance for each would cost more than the write that it is for. */
export const newNonce = (): string => `${ofThisProcess}${(++nonces).toString(36)}`

export const hashOf = (text: string): string => createHash('sha256').update(text).digest('base64url')

/** Two writes of the same thing must differ: the nonce sees to it. */
const withNonce = (body: object): string => JSON.stringify({ nonce: newNonce(), ...body })

const taskText = ({ task, asides }: TaskBody): object => {
  const { mark: _, ...kept } = task
  return Object.keys(asides).length === 0
    ? { task: kept }
    : { task: { ...kept, ...Object.fromEntries(Object.keys(asides).map((field) => [field, ''])) }, asides }
}

export const encodeLiving = ({ sequence, birth, hint, ...body }: LivingBody): string =>
  withNonce({ sequence, birth, hint, ...taskText(body) })

export const encodeBuried = (body: BuriedBody): string => withNonce(body)

export const encodeKey = ({ made, ...body }: KeyBody): string =>
  withNonce({ ...body, made: made === null ? null : taskText(made) })

const parse = (key: string, text: string): Record<string, unknown> => {
  try {
    const body: unknown = JSON.parse(text)
    if (typeof body === 'object' && body !== null) return body as Record<string, unknown>
  } catch {
    // Said below.
  }
  throw corrupt(key, 'is not what Holdfast writes')
}

export const corrupt = (key: string, what: string): HoldfastError =>
  new HoldfastError('STORE_CORRUPT', `${key} ${what}`, { key })

export const decodeTask = (key: string, text: string): LivingBody | BuriedBody => {
  const body = parse(key, text)
  if (typeof body['buriedAt'] === 'number') return body as unknown as BuriedBody
  const task = body['task'] as TaskRecord | undefined
  if (typeof task?.id !== 'string' || typeof task.revision !== 'number') throw corrupt(key, 'holds no task')
  return { ...(body as unknown as LivingBody), asides: (body['asides'] as Asides | undefined) ?? {} }
}

export const decodeKey = (key: string, text: string): KeyBody => {
  const body = parse(key, text) as unknown as KeyBody
  if (typeof body.record?.key !== 'string') throw corrupt(key, 'holds no idempotency key')
  return body.made === null ? body : { ...body, made: { ...body.made, asides: body.made.asides ?? {} } }
}
