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
  /** The bundle that it is in; null: it is a key by itself. */
  readonly bundle: string | null
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

/** Where the part begins that is about the task. */
const nameStart = (key: string): number => key.indexOf('/', key.indexOf('/', READY.length) + 1) + 1

/** Of one task. null: nothing of ours, or of several tasks. */
export const parseHint = (key: string): Hint | null => {
  const [id, type, priority, at, expiry, sequence, bundle, others] = key.slice(nameStart(key)).split('~')
  if (sequence === undefined || others !== undefined) return null
  return {
    key,
    id: id!,
    bundle: bundle ?? null,
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
export const minuteOfHint = (key: string): Instant =>
  Number(key.slice(key.indexOf('/', READY.length) + 1, nameStart(key) - 1)) * MINUTE

// ── bundles ─────────────────────────────────────────────────────────────────────────────────────────────────────

/** Some servers keep each part of a key between slashes as the name of a file: 255 bytes at most. So many ids fit in one. */
const IDS_IN_A_PART = 6

/** How a task calls its hint in a bundle. */
const memberOf = (own: string, bundle: string): string => `${own}~${bundle}`

/** Which bundle this is the key of; null: it is none. */
export const bundleOfKey = (key: string): string | null => {
  const [, , , , , , bundle, others] = key.slice(nameStart(key)).split('~')
  return others === undefined ? null : bundle!
}

/** The text but for the id: what is alike can be in one bundle. */
export const likenessOf = (hint: string): string => {
  const start = nameStart(hint)
  return hint.slice(0, start) + hint.slice(hint.indexOf('~', start))
}

export interface Bundle {
  readonly key: string
  /** What the tasks call it, in the order of their ids as they came. */
  readonly hints: readonly string[]
}

/** One key for hints that are alike. Says every id in its name, so that a list is enough to find all of its tasks. */
export const bundleFor = (hints: readonly string[], bundle: string): Bundle => {
  const [first] = hints
  const start = nameStart(first!)
  const ids = hints.map((hint) => hint.slice(start, hint.indexOf('~', start)))
  const shared = sharedStart(ids)
  const rests = ids.map((id, n) => `${n % IDS_IN_A_PART === 0 ? '/' : '.'}${id.slice(shared.length)}`)
  const facts = first!.slice(first!.indexOf('~', start))
  return {
    key: `${first!.slice(0, start)}${shared}${facts}~${bundle}~${rests.join('')}`,
    hints: hints.map((hint) => memberOf(hint, bundle)),
  }
}

const sharedStart = ([first = '', ...others]: readonly string[]): string => {
  let length = first.length
  for (const other of others) while (!other.startsWith(first.slice(0, length))) length--
  return first.slice(0, length)
}

/** The hints in a key: its own, or those of all tasks in the bundle. Empty: nothing of ours. */
export const hintsIn = (key: string): readonly Hint[] => {
  const start = nameStart(key)
  const [shared, type, priority, at, expiry, sequence, bundle, others] = key.slice(start).split('~')
  if (others === undefined) {
    const hint = parseHint(key)
    return hint === null ? [] : [hint]
  }
  const facts = `~${type}~${priority}~${at}~${expiry}~${sequence}`
  return others
    .slice(1)
    .split(/[./]/)
    .map((rest) => parseHint(memberOf(key.slice(0, start) + shared + rest + facts, bundle!))!)
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

export const parseGrave = (key: string): Grave => {
  const [minute, of] = key.slice(GRAVES.length).split('/')
  return { key, at: (Number(minute) + 1) * MINUTE, of: unescaped(of!) }
}
