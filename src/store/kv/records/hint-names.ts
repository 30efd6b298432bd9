/** The keys of hints. A hint's name says everything that a claim must know before it reads the task. */
import type { Instant, TaskRecord } from '../../../core/task.ts'
import { isTerminal } from '../../../core/task.ts'
import { escaped, groupHash, MINUTE, minuteOf, READY, unescaped } from './names.ts'

/** "This task may need attention from this instant on." Only the task itself says whether it does. */
export interface Hint {
  readonly key: string
  readonly id: string
  /** The bundle that it is in; null: it is a key of its own. */
  readonly bundle: string | null
  readonly type: string
  /** The hash of the task's group; null: it has none. */
  readonly group: string | null
  readonly priority: number
  /** The number of the task's write that this hint was made for. */
  readonly sequence: number
  /** The task's own, or its expiry if that is earlier. */
  readonly availableAt: Instant
  readonly expiresAt: Instant | null
}

export const queuePrefix = (queue: string): string => `${READY}${escaped(queue)}/`

/** Sorts after every digit, so that the hints of groups follow those without a group. */
const GROUP = '~'

/** The hints of grouped tasks lie under their group: however many wait in one group, those of the next are one list away. */
export const groupsPrefix = (queue: string): string => queuePrefix(queue) + GROUP

const folderOf = ({ queue, group }: TaskRecord): string =>
  group === null ? queuePrefix(queue) : `${groupsPrefix(queue)}${groupHash(group)}/`

/** Sorts after every hint of this group and before those of the next. */
export const behindGroup = (queue: string, hash: string): string => `${groupsPrefix(queue)}${hash}0`

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
  const name = `${folderOf(task)}${minuteOf(Number(at))}/${task.id}~${type}~${priority}~${at}~${expiry}~`
  return current?.startsWith(name) ? current : `${name}${sequence}`
}

/** For a task that ends without having had a hint. It names the task until the index of ended tasks has it. */
export const endedHintFor = (task: TaskRecord, sequence: number): string =>
  hintFor({ ...task, status: 'pending' }, sequence, null)!

/** Where the part about the queue ends. */
const queueEnd = (key: string): number => key.indexOf('/', READY.length) + 1

/** Where the minute begins. */
const minuteStart = (key: string): number => {
  const end = queueEnd(key)
  return key[end] === GROUP ? key.indexOf('/', end) + 1 : end
}

/** Where the part about the task begins. */
export const nameStart = (key: string): number => key.indexOf('/', minuteStart(key)) + 1

/** The hash of the group; null: none. */
export const groupOfHint = (key: string): string | null => {
  const end = queueEnd(key)
  return key[end] === GROUP ? key.slice(end + GROUP.length, key.indexOf('/', end)) : null
}

/** null: a bundle, or not a key of Holdfast. */
export const parseHint = (key: string): Hint | null => {
  const [id, type, priority, at, expiry, sequence, bundle, others] = key.slice(nameStart(key)).split('~')
  if (sequence === undefined || others !== undefined) return null
  return {
    key,
    id: id!,
    bundle: bundle ?? null,
    type: unescaped(type!),
    group: groupOfHint(key),
    priority: Number(priority),
    sequence: Number(sequence),
    availableAt: Number(at),
    expiresAt: expiry === '' ? null : Number(expiry),
  }
}

export const queuePrefixOf = (key: string): string => key.slice(0, queueEnd(key))

/** The first instant of the minute that the hint is filed under. */
export const minuteOfHint = (key: string): Instant => Number(key.slice(minuteStart(key), nameStart(key) - 1)) * MINUTE
