/** Reports the changes of a store by any process, found by polling: all of them (follower.ts), or a sample for viewers (sampler.ts). */
import { isHoldfastError, mayPass } from '../../core/errors.ts'
import { checkInteger, checkName, type InstantInput, parseInstant } from '../../core/submission.ts'
import { checkOptionNames } from '../../core/values/option-names.ts'
import { pause } from '../clock.ts'
import type { Session } from '../session.ts'
import { Follower, POLL_EVERY, type TaskChange } from './follower.ts'
import { Sampler } from './sampler.ts'

export type { TaskChange }

/** Which changes are followed, from when, and until when. */
export interface FollowOptions {
  /** Only of this queue. */
  readonly queue?: string
  /** Only of this type. */
  readonly type?: string
  /** Only of tasks with this tag. */
  readonly tag?: { readonly name: string; readonly value: string }
  /** Also report changes since this instant. Default: only changes from now on. */
  readonly since?: InstantInput
  /**
   * For viewers: while more tasks than this change between two polls, only a sample of the changes is reported, each with a `weight`,
   * and the store is polled less often. Default: every change is reported.
   */
  readonly most?: number
  /** Ends it. */
  readonly signal?: AbortSignal
}

/** Finds changes; called again and again. */
interface Poller {
  /** How long to wait before the next poll. */
  readonly rest: number
  poll(): AsyncGenerator<readonly TaskChange[], unknown, undefined>
}

const LONGEST_WAIT = 5_000

/** Reports changes from the time of this call, not of the first iteration. */
export const follow = (
  session: Session,
  closing: AbortSignal,
  options: FollowOptions,
): AsyncGenerator<TaskChange, void, undefined> => {
  checkOptionNames(options, ['queue', 'type', 'tag', 'since', 'most', 'signal'], 'changes')
  const signal = options.signal === undefined ? closing : AbortSignal.any([options.signal, closing])
  return tell(session, pollerOf(session, options), signal)
}

const pollerOf = (session: Session, { queue, type, tag, since, most }: FollowOptions): Poller => {
  const query = {
    ...(queue === undefined ? null : { queue: checkName(queue, 'queue') }),
    ...(type === undefined ? null : { type: checkName(type, 'type') }),
    ...(tag === undefined ? null : { tag }),
  }
  // Other processes may estimate a slightly earlier time: a change made a moment before is better than a missed one.
  const now = session.time.now() - 2 * Math.ceil(session.time.uncertainty)
  const follower = new Follower(session, query, since === undefined ? now : parseInstant(since, 'since'))
  if (most !== undefined) return new Sampler(session, query, follower, checkInteger(most, 'most', 10, 1_000_000))
  return { rest: POLL_EVERY, poll: () => follower.poll({ most: Number.POSITIVE_INFINITY, isFirstLong: true }) }
}

async function* tell(
  session: Session,
  poller: Poller,
  signal: AbortSignal,
): AsyncGenerator<TaskChange, void, undefined> {
  let failures = 0
  let rest = POLL_EVERY
  while (!signal.aborted) {
    try {
      if (session.time.isOld) await session.time.anchor()
      for await (const changes of poller.poll()) {
        for (const change of changes) {
          if (signal.aborted) return
          yield change
        }
      }
      failures = 0
      rest = poller.rest
    } catch (error) {
      if (signal.aborted) return
      // Waiting does not help against missing permissions.
      if (!mayPass(error) || isHoldfastError(error, 'STORE_READ_ONLY')) throw error
      if (failures++ === 0) session.logger.warn(`the store does not answer; looking again: ${(error as Error).message}`)
    }
    await pause(session.clock, Math.max(rest, Math.min(POLL_EVERY * 2 ** failures, LONGEST_WAIT)), signal)
  }
}
