/** The keys of hints. A hint's name says everything that a claim must know before it reads the task. */
import type { Instant, TaskRecord } from '../../../core/task.ts'
import { isTerminal } from '../../../core/task.ts'
import { escaped, MINUTE, minuteOf, READY, unescaped } from './names.ts'

/** "This task may need attention from this instant on." Only the task itself says whether it does. */
export interface Hint {
  readonly key: string
  readonly id: string
  /** The bundle that it is in; null: it is a key of its own. */
  readonly bundle: string | null
  readonly type: string
  readonly priority: number
  /** The number of the task's write that this hint was made for. */
  readonly sequence: number
  /** The task's own, or its expiry if that is earlier. */
  readonly availableAt: Instant
  readonly expiresAt: Instant | null
}

export const queuePrefix = (queue: string): string => `${READY}${escaped(queue)}/`

/** Everything in a hint's name except the sequence. While this stays the same, the task keeps its hint. */
const hintFacts = ({ type, priority, availableAt, expiresAt }: TaskRecord): readonly string[] => [
  escaped(type),
  String(priority),
  String(Math.min(availableAt, expiresAt ?? availableAt)),
  expiresAt === null ? '' : String(expiresAt),
]

/** The hint that `task` needs when it is written with this sequence. Returns `current` if it still fits; null: no hint. */
export const hintFor = (task: TaskRecord, sequence: number, current: string | null): string | null => {
  if (isTerminal(task.status)) return null
  // A running task keeps the hint under which it waited: its lease ends later than that.
  if (task.status === 'running' && current !== null) return current
  const [type, priority, at, expiry] = hintFacts(task)
  const name = `${queuePrefix(task.queue)}${minuteOf(Number(at))}/${task.id}~${type}~${priority}~${at}~${expiry}~`
  return current?.startsWith(name) ? current : `${name}${sequence}`
}

/** For a task that ends without having had a hint. It names the task until the index of ended tasks has it. */
export const endedHintFor = (task: TaskRecord, sequence: number): string =>
  hintFor({ ...task, status: 'pending' }, sequence, null)!

/** Where the part about the task begins. */
export const nameStart = (key: string): number => key.indexOf('/', key.indexOf('/', READY.length) + 1) + 1

/** null: a bundle, or not a key of Holdfast. */
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
    availableAt: Number(at),
    expiresAt: expiry === '' ? null : Number(expiry),
  }
}

export const queuePrefixOf = (key: string): string => key.slice(0, key.indexOf('/', READY.length) + 1)

/** The first instant of the minute that the hint is filed under. */
export const minuteOfHint = (key: string): Instant =>
  Number(key.slice(key.indexOf('/', READY.length) + 1, nameStart(key) - 1)) * MINUTE
