/** A task's timeline, drawn from its history: a strip of periods, and every move below it. */

import { attemptsOf, mayLackMoves, type Span, spansOf } from '../../text/spans.ts'
import { now, storeTime } from '../../text/time.ts'
import { dayOf, duration, happened, plural, relative, timeOfDay } from '../../text/words.ts'
import type { Entry, Step, Task } from '../../types.ts'
import { At } from '../basics.tsx'

/** More periods would be too thin to see. */
const MOST_SPANS = 36

const lengthOf = ({ from, to }: Span): number => Math.max(0, (to ?? now.value) - from)

/** Widths grow with the logarithm, so that a run of 20 ms is visible next to a sleep of two hours. */
const widthOf = (span: Span): number => 1 + Math.log10(1 + lengthOf(span) / 20)

const endOf = ({ kind, to, ending }: Span): string => {
  if (kind !== 'running') return kind
  if (to === null) return 'ongoing'
  if (ending?.move === 'complete') return 'completed'
  if ((ending?.move === 'reschedule' || ending?.move === 'park') && ending.to === 'pending') return 'rescheduled'
  return ending?.move === 'release' || ending?.to === 'cancelled' ? 'stopped' : 'failed'
}

const WAITS: Readonly<Record<string, string>> = {
  park: 'parked',
  reschedule: 'sleeps',
  fail: 'backs off',
  'time-out': 'backs off',
  'lose-lease': 'backs off',
}

const titleOf = (span: Span): string => {
  const { kind, attempt, by, ending, after, to } = span
  const length = duration(lengthOf(span))
  if (kind === 'running')
    return `Attempt ${attempt ?? '?'} by ${by}: ${length}, ${ending ? happened(ending).toLowerCase() : 'still running'}`
  if (kind === 'delayed' && after?.move === 'park') return `Parked: ${length}${to === null ? ' so far' : ''}`
  if (kind === 'delayed') return `${after?.move === 'submit' ? 'Delayed' : 'Waiting until it is due'}: ${length}`
  return `Ready and waiting for a worker: ${length}${to === null ? ' so far' : ''}`
}

const labelOf = ({ kind, attempt, after }: Span): string => {
  if (kind === 'running') return `run ${attempt ?? ''}`
  return kind === 'delayed' ? (WAITS[after?.move ?? ''] ?? 'delayed') : 'ready'
}

const Strip = ({ task }: { readonly task: Task }) => {
  // A task that is due later is not ready yet.
  const all = spansOf(task).filter(({ to, from }) => to !== null || from <= now.value)
  const spans = all.slice(-MOST_SPANS)
  if (spans.length === 0) return null
  return (
    <>
      <ol class="strip" aria-label="Periods of the task">
        {spans.map((span) => (
          <li
            key={`${span.kind}${span.from}`}
            data-span={endOf(span)}
            title={titleOf(span)}
            style={{ flexGrow: String(widthOf(span)) }}
          >
            <span>{labelOf(span)}</span>
            <b>{duration(lengthOf(span))}</b>
          </li>
        ))}
      </ol>
      <p class="note">
        {all.length > spans.length && `The last ${spans.length} of ${all.length} periods. `}
        {spans.length > 1 && 'Widths are logarithmic: a short run stays visible next to a long sleep.'}
      </p>
    </>
  )
}

const Facts = ({ entry }: { readonly entry: Entry }) => {
  const { move, at, availableAt, expiresAt, count, error, reason, delay } = entry
  const wait = delay ?? (availableAt === undefined ? 0 : Date.parse(availableAt) - Date.parse(at))
  const facts = [
    wait > 0 && `due after ${duration(wait)}`,
    count !== undefined && `${move === 'reschedule' ? 'reschedule' : move === 'replay' ? 'replay' : 'retry'} ${count}`,
    expiresAt !== undefined && `expires ${relative(Date.parse(expiresAt), storeTime())}`,
    reason !== undefined && `reason: ${reason}`,
  ].filter((fact) => fact !== false)
  return (
    <>
      {facts.length > 0 && <p class="note">{facts.join(' · ')}</p>}
      {error !== undefined && <p class="bad">{error}</p>}
    </>
  )
}

const Moment = ({ entry, before }: { readonly entry: Entry; readonly before: Entry | undefined }) => {
  const at = Date.parse(entry.at)
  const since = before === undefined ? null : at - Date.parse(before.at)
  const isNewDay = before === undefined || dayOf(at) !== dayOf(Date.parse(before.at))
  return (
    <div class="when">
      <time dateTime={entry.at} title={entry.at}>
        {isNewDay && `${dayOf(at)}, `}
        {timeOfDay(at)}
      </time>
      {since !== null && <span class="note">+{duration(since)}</span>}
    </div>
  )
}

const STEP_WORDS: Readonly<Record<Step['status'], string>> = {
  done: 'done',
  sleeping: 'sleeps',
  waiting: 'waits',
  'timed-out': 'timed out',
  refused: 'was refused by its schema',
}

const StepLine = ({ step }: { readonly step: Step }) => (
  <li data-step={step.status}>
    <div class="what">
      <p>
        {step.kind === 'step' ? 'Step' : step.kind === 'sleep' ? 'Sleep' : 'Wait'} <b>{step.name}</b>
        <span class="tag">{STEP_WORDS[step.status]}</span>
      </p>
      {step.signal && <p class="note">signal {step.signal}</p>}
      {step.until && step.status !== 'done' && (
        <p class="note">
          until <At at={step.until} />
        </p>
      )}
      {step.value !== undefined && <p class="note value">{JSON.stringify(step.value).slice(0, MOST_VALUE)}</p>}
      {step.error && <p class="bad">{step.error}</p>}
    </div>
    <div class="when">
      <time dateTime={step.at} title={step.at}>
        {timeOfDay(Date.parse(step.at))}
      </time>
    </div>
  </li>
)

/** The beginning of a step's value. */
const MOST_VALUE = 120

/** A step is recorded before the move that ends its run, or with it. A wait begins with that move. */
const isAfter = ({ at, status }: Step, { at: moved, move }: Entry): boolean => {
  const since = Date.parse(at) - Date.parse(moved)
  return since > 0 || (since === 0 && (move === 'claim' || status === 'waiting' || status === 'sleeping'))
}

const stepsBetween = (task: Task, from: Entry, to: Entry | undefined): readonly Step[] =>
  (task.steps ?? []).filter((step) => isAfter(step, from) && (to === undefined || !isAfter(step, to)))

export const Timeline = ({ task }: { readonly task: Task }) => {
  const attempts = attemptsOf(task)
  return (
    <>
      <Strip task={task} />
      <ol class="moves">
        {task.history.map((entry, i) => {
          const before = task.history[i - 1]
          const dropped = entry.n - (before?.n ?? 0) - 1
          return [
            <li key={entry.n} data-to={entry.to} data-move={entry.move}>
              {dropped > 0 && mayLackMoves(task) && (
                <p class="dropped">
                  {plural(dropped, 'move')} in between {dropped === 1 ? 'was' : 'were'} dropped: the first move and the
                  last 99 are kept
                </p>
              )}
              <div class="what">
                <p>
                  <b>{happened(entry)}</b>
                  {attempts.has(entry.n) && <span class="tag">attempt {attempts.get(entry.n)}</span>}
                  <span class="by">
                    by <code>{entry.by}</code>
                  </span>
                </p>
                <Facts entry={entry} />
              </div>
              <Moment entry={entry} before={before} />
            </li>,
            ...stepsBetween(task, entry, task.history[i + 1]).map((step) => (
              <StepLine key={`${step.name} ${step.at}`} step={step} />
            )),
          ]
        })}
      </ol>
    </>
  )
}
