/** How an attempt ended, as the move to be decided when it is written. */
import { formatDuration } from '../core/durations.ts'
import * as machine from '../core/machine.ts'
import type { Attempt, Outcome } from './attempt.ts'
import type { Ending } from './finish.ts'
import type { Session } from './session.ts'

const ending = (attempt: Attempt, move: machine.MoveName, decide: Ending['decide']): Ending => ({
  attempt,
  move,
  decide,
})

/** As the handler left it. */
export const endingOf = (session: Session, attempt: Attempt, outcome: Outcome): Ending => {
  if (outcome.kind === 'complete') {
    return ending(attempt, 'complete', (task, now) => machine.complete(task, attempt, outcome.output, now))
  }
  if (outcome.kind === 'reschedule') {
    const { delay, at, extendExpiration } = outcome.wish
    return ending(attempt, 'reschedule', (task, now) => {
      const wait = at === null ? delay : Math.max(0, at - now)
      return machine.reschedule(task, attempt, { delay: wait, extendExpiration, now })
    })
  }
  // A handler that stopped because it was told to has not failed.
  if (attempt.abortedFor === 'shutdown') return releasing(attempt)
  const { error, permanent } = outcome
  const random = session.random()
  return ending(attempt, 'fail', (task, now) => machine.fail(task, attempt, { error, permanent, now, random }))
}

export const releasing = (attempt: Attempt): Ending =>
  ending(attempt, 'release', (task, now) => machine.release(task, attempt, now))

export const timingOut = ({ random }: Session, attempt: Attempt): Ending => {
  const message = `timed out after ${formatDuration(attempt.record.timeout!)}`
  const roll = random()
  return ending(attempt, 'time-out', (task, now) => machine.timeOut(task, attempt, message, now, roll))
}
