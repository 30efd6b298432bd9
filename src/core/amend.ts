/** Changing a task that waits: what a caller may ask for, checked, and the move that writes it. */

import { HoldfastError } from './errors.ts'
import { isExpiredAt } from './guards.ts'
import { type Actor, move } from './moves.ts'
import { hasSteps } from './steps/journal.ts'
import { wake } from './steps/steps.ts'
import { checkGroup, checkInteger, checkTags, type InstantInput, parseInstant } from './submission.ts'
import type { Change, ChangeSet, Instant, TaskRecord } from './task.ts'
import { hasDeparted, MOVED_TAG } from './transfer/transfer.ts'
import { type Duration, parseDuration } from './values/durations.ts'
import { checkOptionNames } from './values/option-names.ts'
import type { Payload } from './values/payload.ts'

/** What `amend` changes of a task that waits; what is left out stays as it is. */
export interface AmendOptions<Input = unknown> {
  /** -1000 to 1000, higher first. */
  readonly priority?: number
  /** Not claimable before this instant. Or: */
  readonly at?: InstantInput
  /** Not claimable before this long from now. */
  readonly delay?: Duration
  /** Not claimable from this long from now on. Or: */
  readonly ttl?: Duration
  /** null: it never expires. */
  readonly expiresAt?: InstantInput | null
  /** In place of the input that it was submitted with. */
  readonly input?: Input
  /** null: it has no group. */
  readonly group?: string | null
  /** In place of all its tags; null: none. */
  readonly tags?: Readonly<Record<string, string>> | null
}

const KNOWN: ReadonlySet<string> = new Set<keyof AmendOptions>([
  'priority',
  'at',
  'delay',
  'ttl',
  'expiresAt',
  'input',
  'group',
  'tags',
])

const FIELDS = ['priority', 'availableAt', 'expiresAt', 'input', 'group', 'tags'] as const

/** The fields to set, relative to `now`. `input` is the payload of `options.input`, which the runtime has encoded. */
export const amendment = (options: AmendOptions, input: Payload | null, now: Instant): ChangeSet => {
  checkOptionNames(options, KNOWN, 'amend')
  const { priority, at, delay, ttl, expiresAt, group, tags } = options
  exclude(at !== undefined && delay !== undefined, 'at', 'delay')
  exclude(ttl !== undefined && expiresAt !== undefined, 'ttl', 'expiresAt')
  return {
    ...(priority === undefined ? null : { priority: checkInteger(priority, 'priority', -1000, 1000) }),
    ...(at === undefined ? null : { availableAt: parseInstant(at, 'at') }),
    ...(delay === undefined ? null : { availableAt: now + parseDuration(delay, 'delay') }),
    ...(ttl === undefined ? null : { expiresAt: now + parseDuration(ttl, 'ttl') }),
    ...(expiresAt === undefined
      ? null
      : { expiresAt: expiresAt === null ? null : parseInstant(expiresAt, 'expiresAt') }),
    ...(input === null ? null : { input: input.text, encoding: input.encoding }),
    ...(group === undefined ? null : { group: group === null ? null : checkGroup(group) }),
    ...(tags === undefined ? null : { tags: tags === null ? null : checkTags(tags) }),
  }
}

const exclude = (areBoth: boolean, one: string, other: string): void => {
  if (areBoth)
    throw new HoldfastError('INVALID_OPTION', `${one} and ${other} cannot be combined: give one of them`, {
      field: one,
    })
}

/** Fields that may change in the middle of a task with steps. */
const ALWAYS: ReadonlySet<string> = new Set(['priority', 'group', 'tags'])

/** null: the task is so already. */
export const amend = (task: TaskRecord, actor: Actor, set: ChangeSet): Change | null => {
  mustWait(task, actor.now)
  const changed = FIELDS.filter((field) => field in set && !isSame(field, set, task))
  if (changed.length === 0) return null
  const fixed = changed.find((field) => !ALWAYS.has(field))
  if (fixed !== undefined && hasSteps(task))
    throw new HoldfastError(
      'CANNOT_AMEND',
      `task ${task.id} has recorded steps, so its ${fixed} can no longer change; its priority, group and tags can`,
      { id: task.id, status: task.status, field: fixed },
    )
  return amended(task, actor, set, changed)
}

const amended = (
  task: TaskRecord,
  actor: Actor,
  set: ChangeSet,
  changed: readonly (typeof FIELDS)[number][],
): Change => {
  const { availableAt, expiresAt, encoding } = set
  const written: ChangeSet = {
    ...Object.fromEntries(changed.map((field) => [field, set[field]])),
    ...(changed.includes('input') && encoding !== task.encoding ? { encoding } : null),
    ...(task.parked === null ? null : { parked: task.parked }),
  }
  return move(task, 'amend', 'pending', actor, written, {
    changed,
    ...(changed.includes('availableAt') ? { availableAt: availableAt! } : null),
    ...(changed.includes('expiresAt') && expiresAt != null ? { expiresAt } : null),
  })
}

/** Due at once; a sleep of its handler is over. null: it is due already. */
export const runNow = (task: TaskRecord, actor: Actor): Change | null => {
  mustWait(task, actor.now)
  if (task.availableAt <= actor.now) return null
  return task.parked === null ? amended(task, actor, { availableAt: actor.now }, ['availableAt']) : wake(task, actor)
}

const mustWait = (task: TaskRecord, now: Instant): void => {
  const { id, status } = task
  if (hasDeparted(task))
    throw new HoldfastError(
      'TASK_MOVED',
      `task ${id} was moved to ${task.tags?.[MOVED_TAG] ?? 'another store'}: change it there`,
      { id, status },
    )
  if (status === 'pending' && !isExpiredAt(task, now)) return
  const what = status === 'pending' ? 'past its expiry' : status
  throw new HoldfastError('CANNOT_AMEND', `task ${id} is ${what}; only a waiting task can be changed`, {
    id,
    status,
  })
}

const isSame = (field: (typeof FIELDS)[number], set: ChangeSet, task: TaskRecord): boolean => {
  if (field === 'input') return set.input === task.input && set.encoding === task.encoding
  return field === 'tags' ? JSON.stringify(set.tags) === JSON.stringify(task.tags) : set[field] === task[field]
}
