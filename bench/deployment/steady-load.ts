/** Open-loop load: submits at a rate, whether or not the earlier submits have returned. */
import { setTimeout as sleep } from 'node:timers/promises'
import { micros } from './serve.ts'

export interface Steady {
  readonly rate: number
  readonly seconds: number
  submit(n: number): Promise<void>
}

export interface Submitted {
  /** When the first one was due, in microseconds of the monotonic clock. */
  readonly startedAt: number
  /** Submits that were due in the time, whatever their outcome. */
  readonly intended: number
  readonly errors: number
  readonly firstError: string | null
}

/** The maximum number of unanswered submits. */
const MOST_IN_FLIGHT = 5_000
export const GRACE_MS = 10_000
/** Submits that are due within this time are sent together, because timers are no more exact. */
const TICK_MS = 1

export const submitSteadily = async ({ rate, seconds, submit }: Steady): Promise<Submitted> => {
  const startedAt = micros()
  const end = seconds * 1_000_000
  const gap = 1_000_000 / rate
  const inFlight = new Set<Promise<void>>()
  let intended = 0
  let errors = 0
  let firstError: string | null = null
  const failed = (error: unknown): void => {
    errors++
    firstError ??= error instanceof Error ? error.message : String(error)
  }
  let due = Math.random() * gap
  while (due < end) {
    const elapsed = micros() - startedAt
    for (; due <= elapsed && due < end; due += gapOf(gap)) {
      const n = intended++
      if (inFlight.size >= MOST_IN_FLIGHT) {
        failed(`${MOST_IN_FLIGHT} submits had not returned`)
        continue
      }
      const submitted = submit(n)
        .catch(failed)
        .finally(() => inFlight.delete(submitted))
      inFlight.add(submitted)
    }
    await sleep(Math.max(TICK_MS, (due - elapsed) / 1_000))
  }
  await Promise.race([Promise.all(inFlight), sleep(GRACE_MS, null, { ref: false })])
  return { startedAt, intended, errors, firstError }
}

/** Random around the mean, so that submits do not synchronise with a system's polls. */
const gapOf = (mean: number): number => mean * (0.5 + Math.random())
