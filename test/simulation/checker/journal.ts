/** What one write may do to the journal of a task: it only grows, only under the current lease, and the first outcome of a step stands. */
import type { JournalEntry, TaskRecord } from '../../../src/core/task.ts'
import type { Invariant } from './invariants.ts'

type Say = (invariant: Invariant, what: string) => void

/** Kinds that anybody may write; all others belong to the run. */
const OF_OTHERS: ReadonlySet<string> = new Set<JournalEntry['kind']>(['signal', 'wake'])

/** The entries that this write has added. `mayForget`: it is a fresh replay. */
export const checkJournal = (before: TaskRecord, after: TaskRecord, say: Say): readonly JournalEntry[] => {
  if (after.generation !== before.generation) {
    if (after.journal.length > 0) say('I8', 'kept its journal through a fresh replay')
    return []
  }
  for (const [i, old] of before.journal.entries()) {
    const now = after.journal[i]
    if (now === undefined || now.kind !== old.kind || now.name !== old.name || now.value !== old.value)
      say('I8', `entry ${i} of its journal, ${old.kind} ${old.name}, was ${now === undefined ? 'lost' : 'rewritten'}`)
  }
  const added = after.journal.slice(before.journal.length)
  if (added.length > 0) checkAdded(before, after, added, say)
  return added
}

const checkAdded = (before: TaskRecord, after: TaskRecord, added: readonly JournalEntry[], say: Say): void => {
  for (const { kind, name, op } of added) {
    if (OF_OTHERS.has(kind)) continue
    if (before.lease === null) say('I3', `${kind} ${name} was written while it was ${before.status}`)
    else if (op !== before.lease.token)
      say('I3', `${kind} ${name} was written under ${op}, but ${before.lease.token} held the lease`)
  }
  const [steps, sent, taken] = [new Set<string>(), new Set<string>(), new Set<string>()]
  const once = (seen: Set<string>, what: string, invariant: Invariant, how: string): void => {
    if (seen.has(what)) say(invariant, `${what} ${how} twice`)
    seen.add(what)
  }
  for (const { kind, name, signalId } of after.journal) {
    if (kind === 'step') once(steps, name, 'I12', 'was recorded')
    else if (kind === 'signal') once(sent, signalId!, 'I6', 'was kept')
    else if (kind === 'take') once(taken, signalId!, 'I12', 'was taken')
  }
  for (const id of taken) if (!sent.has(id)) say('I13', `took signal ${id}, which it does not have`)
}

/** A step or a signal changes no more than this. */
const CHANGED_BY_JOURNAL: ReadonlySet<string> = new Set([
  'journal',
  'hasJournal',
  'revision',
  'updatedAt',
  'expiresAt',
  'availableAt',
  'parked',
  'lease',
  'progress',
  'mark',
])

/** The write has no entry in the history. */
export const checkJournalOnly = (before: TaskRecord, after: TaskRecord, say: Say): void => {
  if (before.lease?.token !== after.lease?.token) say('I3', 'its lease changed without a move')
  if (after.expiresAt !== null && after.expiresAt !== before.expiresAt) say('I8', 'its expiry changed without a move')
  for (const name of Object.keys(after) as (keyof TaskRecord)[])
    if (!CHANGED_BY_JOURNAL.has(name) && JSON.stringify(before[name]) !== JSON.stringify(after[name]))
      say('I8', `its ${name} changed with a step or a signal`)
}
