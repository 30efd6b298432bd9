/** Compares the record of one task with what handlers and callers saw. */
import { RUN_ENDS } from '../../core/machine.ts'
import { type HistoryEntry, isTerminal, type TaskRecord } from '../../core/task.ts'
import { type CheckedTask, isWhole } from './history-rules.ts'
import type { Invariant } from './invariants.ts'
import type { Ledger } from './ledger.ts'
import type { EndLine, ServesLine, StartLine, SubmittedLine } from './witness-lines.ts'

/** A task as it was read from the store, with digests in place of its payloads. */
export interface SeenTask
  extends CheckedTask,
    Pick<TaskRecord, 'type' | 'queue' | 'scheduleId' | 'replayOf' | 'outputError'> {
  readonly inputDigest: string
  readonly outputDigest: string | null
}

/** What the logs say about one task. */
export interface Sightings {
  readonly starts: readonly StartLine[]
  readonly ends: readonly EndLine[]
  readonly submits: readonly SubmittedLine[]
}

/** What is known about the whole system. */
export interface Circumstances {
  /** When the read of the store began. The logs were read before. */
  readonly readAt: number
  readonly clockBound: number
  /** Workers that keep a log. */
  readonly workers: ReadonlySet<string>
  readonly serves: ReadonlyMap<string, Pick<ServesLine, 'queues' | 'types'>>
  /** When processes ended, by process. */
  readonly downs: ReadonlyMap<string, readonly number[]>
  /** How soon the task of a dead process must run again, in milliseconds; null: unknown. */
  readonly recovery: number | null
  readonly isDrained: boolean
}

type Say = (invariant: Invariant, what: string) => void

export const checkSightings = (
  task: SeenTask,
  { starts, ends, submits }: Sightings,
  facts: Circumstances,
  ledger: Ledger,
): void => {
  const say: Say = (invariant, what) => ledger.violate(invariant, task.id, what)
  if (facts.isDrained) {
    ledger.check('I1')
    if (!isTerminal(task.status)) say('I1', `is ${task.status} though everything was drained`)
  }
  const fences = starts.map(({ fence }) => fence)
  checkFences(task, fences, ledger)
  checkRepeats(task, fences, ledger)
  checkCompletion(task, starts, ends, facts, ledger, say)
  checkInputs(task, starts, submits, ledger, say)
  checkLeaseEnds(task, starts, facts, say)
  checkPoison(task, starts, ends, ledger, say)
  checkRecovery(task, starts, ends, facts, ledger, say)
  for (const { worker, queue, type, fence } of starts) {
    if (queue !== task.queue || type !== task.type)
      say('I16', `run ${fence} was of type ${type} in queue ${queue}; it is of ${task.type} in ${task.queue}`)
    const served = facts.serves.get(worker)
    if (served === undefined) continue
    ledger.check('I16')
    if (!served.queues.includes(queue) || !served.types.includes(type))
      say('I16', `was run by ${worker}, which does not serve type ${type} of queue ${queue}`)
  }
  for (const { key } of submits) {
    if (key == null) continue
    ledger.check('I6')
    if (key !== task.idempotencyKey)
      say('I6', `was given to a caller for the key ${key}, but has ${task.idempotencyKey ?? 'none'}`)
  }
}

/** Every run has a claim of its own. */
export const checkFences = ({ id, attempts }: CheckedTask, fences: readonly number[], ledger: Ledger): void => {
  ledger.check('I3', fences.length)
  if (new Set(fences).size !== fences.length)
    ledger.violate('I3', id, `was begun twice under one fence (${fences.join(', ')})`)
  if (fences.some((fence) => fence > attempts))
    ledger.violate('I3', id, `was begun under a fence beyond its ${attempts} claims`)
}

/** Every repeat is explained by a return to pending. */
export const checkRepeats = (task: CheckedTask, fences: readonly number[], ledger: Ledger): void => {
  if (!isWhole(task)) return
  ledger.check('I12', fences.length)
  const returns = task.history.filter(
    ({ move, to }) => (RUN_ENDS.has(move) || move === 'retry' || move === 'replay') && to === 'pending',
  ).length
  if (fences.length - 1 > returns)
    ledger.violate(
      'I12',
      task.id,
      `was begun ${fences.length} times, which ${returns} returns to pending do not explain`,
    )
}

/** The last claim of a task and the move that ended it. */
export const lastRunOf = ({
  history,
}: CheckedTask): { readonly by: string; readonly end: string | null; readonly at: number } | null => {
  const claim = history.findLastIndex(({ move }) => move === 'claim')
  if (claim === -1) return null
  const end = history.slice(claim + 1).find(({ move }) => RUN_ENDS.has(move))
  return { by: history[claim]!.by, end: end?.move ?? null, at: end?.at ?? Number.POSITIVE_INFINITY }
}

/** A worker that keeps a log has written there what it completed. */
const checkCompletion = (
  task: SeenTask,
  starts: readonly StartLine[],
  ends: readonly EndLine[],
  { workers, readAt, clockBound }: Circumstances,
  ledger: Ledger,
  say: Say,
): void => {
  const last = lastRunOf(task)
  if (last?.end !== 'complete' || !workers.has(last.by) || last.at >= readAt - clockBound) return
  ledger.check('I11')
  const fence = task.attempts
  const end = ends.find((line) => line.fence === fence)
  if (!starts.some((line) => line.fence === fence))
    say('I11', `is completed under fence ${fence}, and no handler ran under it`)
  else if (end === undefined || end.what === 'threw')
    say('I11', `is completed under fence ${fence}, whose handler did not return`)
  else if (
    end.output !== undefined &&
    task.outputError === null &&
    task.outputDigest !== null &&
    end.output !== task.outputDigest
  )
    say('I11', `has another output than the run under fence ${fence}, which completed it`)
}

const CHANGES_INPUT: ReadonlySet<string> = new Set(['amend', 'coalesce', 'replay'])

const checkInputs = (
  task: SeenTask,
  starts: readonly StartLine[],
  submits: readonly SubmittedLine[],
  ledger: Ledger,
  say: Say,
): void => {
  // The earlier input is not known.
  if (!isWhole(task) || task.history.some(({ move }) => CHANGES_INPUT.has(move))) return
  for (const { input, fence } of starts) {
    if (input === undefined) continue
    ledger.check('I13')
    if (input !== task.inputDigest) say('I13', `run ${fence} saw another input than the store holds`)
  }
  for (const { input } of submits) {
    if (input === undefined) continue
    ledger.check('I13')
    if (input !== task.inputDigest) say('I13', 'has another input than was submitted')
  }
}

const nthClaim = ({ history }: CheckedTask, fence: number): number => {
  let claims = 0
  return history.findIndex(({ move }) => move === 'claim' && ++claims === fence)
}

/** The entry that ended the run under this fence, if the history still has both. */
const endOf = (task: CheckedTask, fence: number): HistoryEntry | undefined => {
  const claim = isWhole(task) ? nthClaim(task, fence) : -1
  if (claim === -1) return undefined
  return task.history.slice(claim + 1).find(({ move }) => RUN_ENDS.has(move) || move === 'retry')
}

/** A lease must not be taken before the end that its claim gave it. Renewals only make it end later. */
const checkLeaseEnds = (
  task: SeenTask,
  starts: readonly StartLine[],
  { clockBound }: Circumstances,
  say: Say,
): void => {
  for (const { fence, until } of starts) {
    if (until === undefined) continue
    const end = endOf(task, fence)
    if (end?.move === 'lose-lease' && end.at < until - clockBound)
      say('I2', `lost the lease of run ${fence} ${until - end.at} ms before it could lapse`)
  }
}

/** Runs that neither returned nor threw: their process died, or they still run. */
const unfinished = (starts: readonly StartLine[], ends: readonly EndLine[]): readonly StartLine[] => {
  const ended = new Set(ends.map(({ fence }) => fence))
  return starts.filter(({ fence }) => !ended.has(fence))
}

const checkPoison = (
  task: SeenTask,
  starts: readonly StartLine[],
  ends: readonly EndLine[],
  ledger: Ledger,
  say: Say,
): void => {
  const cut = unfinished(starts, ends).length
  if (cut === 0 || task.maxRetries === null || !isWhole(task)) return
  ledger.check('I14')
  const free = task.history.filter(
    ({ move, to }) =>
      to === 'pending' && (move === 'release' || move === 'retry' || move === 'park' || move === 'reschedule'),
  ).length
  const allowed = (task.maxRetries + 1) * (task.replayCount + 1) + free
  if (cut > allowed) say('I14', `was cut short ${cut} times; its retries allow ${allowed}`)
}

/** The task of a process that died runs again within the bound. */
const checkRecovery = (
  task: SeenTask,
  starts: readonly StartLine[],
  ends: readonly EndLine[],
  { downs, recovery, readAt }: Circumstances,
  ledger: Ledger,
  say: Say,
): void => {
  if (recovery === null || !isWhole(task)) return
  for (const { fence, process, at } of unfinished(starts, ends)) {
    const down = downs.get(process)?.find((when) => when >= at)
    if (down === undefined || readAt - down < recovery) continue
    ledger.check('I10')
    const end = endOf(task, fence)
    if (end === undefined) say('I10', `is held by run ${fence}, whose process died ${readAt - down} ms ago`)
    else if (end.at - down > recovery)
      say(
        'I10',
        `was free ${end.at - down} ms after the process of run ${fence} died; at most ${recovery} ms are allowed`,
      )
  }
}

/** Runs that ended after another move had ended their lease: what they wrote was refused. */
export const lateRuns = (task: SeenTask, ends: readonly EndLine[]): number =>
  ends.filter((line) => {
    const end = endOf(task, line.fence)
    return end !== undefined && (end.move === 'lose-lease' || end.move === 'retry') && line.at > end.at
  }).length
