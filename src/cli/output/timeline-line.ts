/** The history of a task with its steps and signals, one line each. */
import { HISTORY_KEPT, isMove, type StepMoment, type TimelineEntry } from '../../index.ts'
import { historyLine } from './history-line.ts'
import { instant, printable } from './render.ts'

const HAPPENED: Readonly<Record<StepMoment['kind'], (moment: StepMoment) => string>> = {
  step: ({ size = 0 }) => `recorded, ${size} characters`,
  sleep: ({ until }) => `sleeps until ${instant(until!)}`,
  wake: ({ by }) => `woken by ${by}`,
  wait: ({ signal, until }) => `waits for signal ${signal}${until == null ? '' : ` until ${instant(until)}`}`,
  take: ({ signalId, error }) => `took signal ${signalId}${error === undefined ? '' : `, refused: ${error}`}`,
  timeout: () => 'no signal came in time',
  signal: ({ by, signalId, size = 0 }) => `from ${by}, id: ${signalId}, ${size} characters`,
}

/** `Step charge: recorded, 13 characters`, `Signal approved: from ann@host, …`. */
const momentLine = (moment: StepMoment): string =>
  printable(`${moment.kind === 'signal' ? 'Signal' : 'Step'} ${moment.name}: ${HAPPENED[moment.kind](moment)}`)

/** A line marks where the middle of the history was dropped. */
export const timelineLines = (entries: readonly TimelineEntry[], withTimes: boolean): string[] => {
  const [, second] = entries.filter(isMove)
  const isWhole = entries.filter(isMove).length < HISTORY_KEPT
  return entries.flatMap((entry) => {
    const line = isMove(entry) ? historyLine(entry) : momentLine(entry)
    const shown = withTimes ? `${line} at ${instant(entry.at)}` : line
    // A gap alone means nothing: steps and signals are versions too, and not in the history.
    return entry === second && second.n > 2 && !isWhole
      ? [`Versions 2 to ${second.n - 1}: dropped (the first and the last ${HISTORY_KEPT - 1} are kept)`, shown]
      : [shown]
  })
}
