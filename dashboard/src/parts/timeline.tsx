/** A task's timeline, drawn from its history: a strip of periods, and every move below it. */

import { attemptsOf, type Span, spansOf } from '../spans.ts'
import { now, storeTime } from '../time.ts'
import type { Entry, Task } from '../types.ts'
import { dayOf, duration, happened, relative, timeOfDay } from '../words.ts'

/** More periods would be too thin to see. */
const MOST_SPANS = 36

const lengthOf = ({ from, to }: Span): number => Math.max(0, (to ?? now.value) - from)

/** Widths grow with the logarithm, so that a run of 20 ms is visible next to a sleep of two hours. */
const widthOf = (span: Span): number => 1 + Math.log10(1 + lengthOf(span) / 20)

const endOf = ({ kind, to, ending }: Span): string => {
  if (kind !== 'running') return kind
  if (to === null) return 'ongoing'
  if (ending?.move === 'complete') return 'completed'
  if (ending?.move === 'reschedule' && ending.to === 'pending') return 'rescheduled'
  return ending?.move === 'release' || ending?.to === 'cancelled' ? 'stopped' : 'failed'
}

const WAITS: Readonly<Record<string, string>> = {
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
  if (kind === 'delayed') return `${after?.move === 'submit' ? 'Delayed' : 'Waiting until it is due'}: ${length}`
  return `Ready and waiting for a worker: ${length}${to === null ? ' so far' : ''}`
}

const labelOf = ({ kind, attempt, after }: Span): string => {
  if (kind === 'running') return `run ${attempt ?? ''}`
  return kind === 'delayed' ? (WAITS[after?.move ?? ''] ?? 'delayed') : 'ready'
}

const Strip = ({ task }: { readonly task: Task }) => {
  const all = spansOf(task)
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
        Widths are logarithmic: a short run stays visible next to a long sleep.
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

export const Timeline = ({ task }: { readonly task: Task }) => {
  const attempts = attemptsOf(task)
  return (
    <>
      <Strip task={task} />
      <ol class="moves">
        {task.history.map((entry, i) => {
          const before = task.history[i - 1]
          const dropped = entry.n - (before?.n ?? 0) - 1
          return (
            <li key={entry.n} data-to={entry.to} data-move={entry.move}>
              {dropped > 0 && (
                <p class="dropped">{dropped} moves in between were dropped: the first move and the last 99 are kept</p>
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
            </li>
          )
        })}
      </ol>
    </>
  )
}
