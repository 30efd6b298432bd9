/** A rate limits the starts in any window of time: which permits it gives at an instant, and which starts count. */

import { HoldfastError } from '../errors.ts'
import type { Instant } from '../task.ts'
import { parseDuration } from '../values/durations.ts'

export interface Rate {
  readonly count: number
  /** In milliseconds. */
  readonly per: number
}

const SHORTEST = 1_000
const LONGEST = 86_400_000

/** `'60/1m'` */
export const parseRate = (text: string, field: string): Rate => {
  const [, digits, duration] = (typeof text === 'string' && /^\s*(\d{1,7})\s*\/\s*(\S.*)$/.exec(text)) || []
  if (digits === undefined || duration === undefined)
    throw refused(field, `'${String(text).slice(0, 40)}' must be a count and a duration, such as '60/1m'`)
  // '10/s' is how people say it.
  const per = parseDuration(/^[a-z]+$/i.test(duration) ? `1${duration}` : duration, field)
  const count = Number(digits)
  if (count < 1) throw refused(field, 'must permit at least 1: pause the queue to stop it')
  if (per < SHORTEST || per > LONGEST) throw refused(field, 'must be over a time of 1 second to 1 day')
  return { count, per }
}

/** A rate such as `60/1m` as starts per second. */
export const startsPerSecond = (text: string): number => {
  const { count, per } = parseRate(text, 'rate')
  return (count * 1_000) / per
}

export interface RateInForce {
  readonly rate: Rate
  readonly burst: number
  /** How late a permit may still be reserved. Where claims are slow, looks are rare, and each takes the permits since the last one. */
  readonly slack: number
  /** How long after its reservation a permit may be used. */
  readonly validity: number
}

/** Tasks that began at one instant, or a little earlier. */
type Starts = readonly [at: Instant, count: number]

/** Permits of a claim that has not ended as far as the store knows. Its tasks may begin until `until`. */
interface Held {
  readonly id: string
  readonly until: Instant
  readonly count: number
}

/** What the document of a rate keeps. */
export interface RateState {
  /** The instant of the first permit that is not reserved. null: no permit was ever reserved. */
  readonly free: Instant | null
  /** Sorted by instant. */
  readonly starts: readonly Starts[]
  readonly held: readonly Held[]
}

export const NO_STARTS: RateState = { free: null, starts: [], held: [] }

export interface Reservation {
  readonly permits: number
  /** Unchanged if there is no permit. */
  readonly state: RateState
  /** No claim may use these permits after this instant. */
  readonly notAfter: Instant
  /** When to ask for another permit: there will be one, or claims of others may have ended without using theirs. */
  readonly next: Instant
}

/** How late permits may be where claims are fast. */
export const slackOf = ({ per }: Rate, leaseTtl: number): number => Math.min(500, Math.max(per / 100, leaseTtl / 200))

/**
 * Reserves up to `wanted` permits for a claim that begins no earlier than `now`. Two rules hold. First, permits are spaced evenly (GCRA), and with them
 * the starts. Second, the starts of the last window and those that unfinished claims may still add never exceed the limit. Each start counts from its
 * reservation until one window after it happened, so the limit holds however long claims take. `settle` records what a claim used when it ends.
 */
export const reserve = (
  given: RateState,
  now: Instant,
  { id, wanted }: { readonly id: string; readonly wanted: number },
  { rate, burst, slack, validity }: RateInForce,
): Reservation => {
  // Another process may later reserve for an earlier instant, so older starts are kept too.
  const kept = since(given, now - SPREAD, rate.per)
  const { free, starts, held } = since(kept, now, rate.per)
  const most = rate.count + burst - 1
  const spacing = rate.per / rate.count
  // It can be so late only if the rate was lower before, or the clock was set back.
  const isCredible = free !== null && free <= now + burst * spacing + SPREAD
  const from = Math.max(isCredible ? free : Number.NEGATIVE_INFINITY, now - slack)
  const due = Math.floor((now - from) / spacing + burst + ROUNDING)
  const permits = Math.max(0, Math.min(wanted, due, most - sumOf(starts) - sumOf(held.map(asStarts))))
  const notAfter = now + validity
  const after = from + permits * spacing
  const taken = permits === 0 ? [] : [{ id, until: notAfter, count: permits }]
  const roomAt = nextRoom([...starts, ...[...held, ...taken].map(asStarts)], most, rate.per)
  const dueAt = Math.max(now + 1, Math.ceil(after - (burst - 1) * spacing))
  const askAt = held.some(({ until }) => until >= now)
    ? Math.max(dueAt, now + askAgain(rate))
    : Number.POSITIVE_INFINITY
  const next = Math.max(dueAt, Math.min(roomAt, askAt))
  const state = permits === 0 ? given : { free: after, starts: kept.starts, held: [...kept.held, ...taken] }
  return { permits, state, notAfter, next }
}

/** A claim has ended: when it began tasks. The permits that it did not use are given back. */
export const settle = (
  state: RateState,
  { id, begun }: { readonly id: string; readonly begun: readonly Instant[] },
  { rate }: Pick<RateInForce, 'rate'>,
): RateState => {
  const own = state.held.find((one) => one.id === id)
  if (own === undefined) return state
  const used = Math.min(begun.length, own.count)
  const spacing = rate.per / rate.count
  return {
    free: state.free === null ? null : state.free - (own.count - used) * spacing,
    starts: used === 0 ? state.starts : withStarts(state.starts, [Math.max(...begun), used], rate),
    held: state.held.filter((one) => one !== own),
  }
}

/** From this instant on the state says what `NO_STARTS` does, in every process. */
export const overAt = ({ free, starts, held }: RateState, { rate, slack }: RateInForce): Instant => {
  const last = Math.max(...starts.map(([at]) => at), ...held.map(({ until }) => until))
  return Math.max(last + rate.per, (free ?? Number.NEGATIVE_INFINITY) + slack) + SPREAD
}

/** Drops the starts and permits that no longer count. */
const since = ({ free, starts, held }: RateState, now: Instant, per: number): RateState => {
  // An instant beyond every claim means that the clock was set back.
  const credible = (at: Instant): Instant => (at > now + LATEST ? now : at)
  return {
    free,
    starts: starts.filter(([at]) => at > now - per).map(([at, count]) => [credible(at), count]),
    held: held.filter(({ until }) => until > now - per).map((one) => ({ ...one, until: credible(one.until) })),
  }
}

/** How soon to look whether the claims of others have ended. */
const askAgain = ({ per }: Rate): number => Math.min(1_000, per / 50)

/** From when fewer than `most` starts count. */
const nextRoom = (starts: readonly Starts[], most: number, per: number): Instant => {
  let over = sumOf(starts) - most
  for (const [at, count] of starts.toSorted(byInstant)) {
    if (over < 0) break
    over -= count
    if (over < 0) return at + per
  }
  return Number.NEGATIVE_INFINITY
}

/** If there are many starts, those of one slot are counted as if they had begun together, at the last instant of them. */
const withStarts = (starts: readonly Starts[], begun: Starts, { per }: Rate): readonly Starts[] => {
  const all = [...starts, begun].sort(byInstant)
  if (all.length <= MOST_STARTS) return all
  const joined = new Map<number, Starts>()
  for (const [at, count] of all) {
    const slot = Math.floor((at * SLOTS) / per)
    joined.set(slot, [at, count + (joined.get(slot)?.[1] ?? 0)])
  }
  return [...joined.values()]
}

const asStarts = ({ until, count }: Held): Starts => [until, count]

const sumOf = (starts: readonly Starts[]): number => starts.reduce((sum, [, count]) => sum + count, 0)

const byInstant = ([a]: Starts, [b]: Starts): number => a - b

/** Sums of fractions may fall short of a whole permit by this much. */
const ROUNDING = 1e-6
const MOST_STARTS = 128
/** The number of slots in a window. */
const SLOTS = 50
/** Processes that reserve at the same time do so for instants that are at most this far apart. */
export const SPREAD = 1_000
/** No claim takes longer. */
export const LATEST = 60_000

const refused = (field: string, why: string): HoldfastError =>
  new HoldfastError('INVALID_OPTION', `${field} ${why}`, { field })
