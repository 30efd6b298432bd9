/** Under which keys everything is kept. A hint says in its name all that a look must know before it reads the task. */
import { createHash } from 'node:crypto'
import type { Instant, TaskRecord } from '../../core/task.ts'
import { isTerminal } from '../../core/task.ts'

export const TASKS = 'tasks/'
export const READY = 'ready/'
export const KEYS = 'keys/'
export const GRAVES = 'graves/'
export const DOCUMENTS = 'documents/'
export const IDENTITY = 'holdfast.json'

/** UUIDv7 begins with the time, so it is the end that spreads tasks evenly. */
export const taskKey = (id: string): string => `${TASKS}${id.slice(-2)}/${id}.json`

export const idOfTaskKey = (key: string): string => key.slice(key.lastIndexOf('/') + 1, -'.json'.length)

/** A text for each part of the tasks: all of them together are all tasks. */
export const TASK_PARTS: readonly string[] = [...'0123456789abcdef'].map((digit) => TASKS + digit)

export const keyKey = (key: string): string => `${KEYS}${createHash('sha256').update(key).digest('hex')}.json`

/** Never the same twice, so that taking one away cannot take away what another write refers to. */
export const asideKey = (id: string, nonce: string, field: string): string => `aside/${id}/${nonce}-${field}`

export const documentKey = (name: string): string => DOCUMENTS + escaped(name)

export const documentName = (key: string): string => unescaped(key.slice(DOCUMENTS.length))

/** Letters, digits, `_` and `-` as they are, everything else as `=` and two hexadecimal digits for each byte. */
const escaped = (text: string): string =>
  text.replace(/[^A-Za-z0-9_-]/gu, (character) =>
    [...Buffer.from(character)].map((byte) => `=${byte.toString(16).padStart(2, '0')}`).join(''),
  )

export const unescaped = (text: string): string =>
  Buffer.from(
    text.replace(/=([0-9a-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  ).toString()

export const MINUTE = 60_000
export const minuteOf = (instant: Instant): string =>
  Math.floor(Math.max(0, instant) / MINUTE)
    .toString()
    .padStart(12, '0')

// ── hints ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** "This task may want to be looked at from this instant on." Whether it does, only the task itself says. */
export interface Hint {
  readonly key: string
  readonly id: string
  readonly type: string
  readonly priority: number
  /** Which write of the task it was made for. */
  readonly sequence: number
  readonly at: Instant
  readonly expiresAt: Instant | null
}

export const queuePrefix = (queue: string): string => `${READY}${escaped(queue)}/`

/** All that a hint's name says but for the sequence: while this stays the same the hint may stay, too. */
const hintFacts = ({ type, priority, availableAt, expiresAt }: TaskRecord): readonly string[] => [
  escaped(type),
  String(priority),
  String(Math.min(availableAt, expiresAt ?? availableAt)),
  expiresAt === null ? '' : String(expiresAt),
]

/** The hint that `task` needs when it is written as number `sequence`; `current` if that will do; null: none. */
export const hintFor = (task: TaskRecord, sequence: number, current: string | null): string | null => {
  if (isTerminal(task.status)) return null
  // A running task is found where it waited: its lease ends later than that.
  if (task.status === 'running' && current !== null) return current
  const [type, priority, at, expiry] = hintFacts(task)
  const name = `${queuePrefix(task.queue)}${minuteOf(Number(at))}/${task.id}~${type}~${priority}~${at}~${expiry}~`
  return current?.startsWith(name) ? current : `${name}${sequence}`
}

/** null: nothing of ours. */
export const parseHint = (key: string): Hint | null => {
  const [id, type, priority, at, expiry, sequence] = key.slice(key.lastIndexOf('/') + 1).split('~')
  if (sequence === undefined) return null
  return {
    key,
    id: id!,
    type: unescaped(type!),
    priority: Number(priority),
    sequence: Number(sequence),
    at: Number(at),
    expiresAt: expiry === '' ? null : Number(expiry),
  }
}

/** The part that names the queue. */
export const prefixOfHint = (key: string): string => key.slice(0, key.indexOf('/', READY.length) + 1)

/** The first instant of the minute under which a hint lies. */
export const minuteOfHint = (key: string): Instant => {
  const end = key.lastIndexOf('/')
  return Number(key.slice(key.lastIndexOf('/', end - 1) + 1, end)) * MINUTE
}

// ── graves ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** What is to be swept away from some instant on. */
export interface Grave {
  readonly key: string
  readonly at: Instant
  /** The key that was marked as removed. */
  readonly of: string
}

export const graveKey = (at: Instant, of: string): string => `${GRAVES}${minuteOf(at)}/${escaped(of)}`

export const parseGrave = (key: string): Grave => ({
  key,
  at: minuteOfHint(key) + MINUTE,
  of: unescaped(key.slice(key.lastIndexOf('/') + 1)),
})
