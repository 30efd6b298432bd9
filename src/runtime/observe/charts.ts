/**
 * Charts of what happened, by queue and type. The last minutes are counted from the histories of the store, so a restart loses nothing of
 * them. Each minute is then written to a document once, by whichever process is first: any number of processes count it once.
 */

import { HoldfastError } from '../../core/errors.ts'
import {
  type ChartFilter,
  type ChartSlot,
  type ChartTotals,
  chartMoveOf,
  type Depth,
  depthOf,
  emptySlot,
  merged,
  namesIn,
  scaled,
  slotStart,
  totalsOf,
  withDepths,
  withMove,
} from '../../core/observe/chart-slot.ts'
import type { Instant } from '../../core/task.ts'
import { pause } from '../clock.ts'
import type { Queues } from '../queues/queues.ts'
import type { Session } from '../session.ts'
import { queueStats } from '../tasks/inspect.ts'
import { ChartRecords, grouped, HOURS, MINUTES, type Slots, TENS } from './chart-records.ts'
import { Follower, POLL_EVERY, type TaskChange } from './follower.ts'
import { Sampler } from './sampler.ts'
import { WorkerCounts, type WorkerReading } from './worker-counts.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** The length of a slot in memory. */
const FINE = 5 * SECOND
/** How far back a starting process counts from the histories. */
const CAUGHT_UP = 6 * MINUTE
const KEPT_FINE = 10 * MINUTE
/** A starting process reads at most this many changed tasks. If there are more, its charts begin now. */
const MOST_CAUGHT_UP = 50_000
/** Above this many changed tasks between two polls, changes are sampled. */
const MOST_FOLLOWED = 2_000
/** Every change is visible this long after its timestamp. A minute is complete after this time. */
const SETTLED_AFTER = 25 * SECOND
const DEPTH_EVERY = 15 * SECOND
const DEPTH_REST = 30
const DEPTH_CAP = 10_000
/** Depths are kept for this many queues only. */
const MOST_DEPTHS = 100
const LONGEST_WAIT = 5_000
/** Without `start`, counting stops if nothing reads the charts for this long. */
const UNREAD = 10 * MINUTE

/** The ranges that charts can show, by name. */
export const CHART_RANGES = ['5m', '1h', '24h', '7d'] as const
/** The name of a range that charts can show. */
export type ChartRange = (typeof CHART_RANGES)[number]

const RANGES: Readonly<Record<ChartRange, { readonly step: number; readonly points: number }>> = {
  '5m': { step: FINE, points: 60 },
  '1h': { step: MINUTE, points: 60 },
  '24h': { step: 10 * MINUTE, points: 144 },
  '7d': { step: HOUR, points: 168 },
}

/** Which part of the past a chart shows, and of which queue. */
export interface ChartQuery extends ChartFilter {
  /** How far back, and thereby how fine: 5 s, a minute, 10 minutes or an hour for each point. */
  readonly range: ChartRange
}

/** One point of a chart: what happened in one slot of time. */
export interface ChartPoint extends ChartTotals {
  /** The start of the slot. */
  readonly at: Instant
  /** null: not counted in this slot. */
  readonly depth: Depth | null
}

/** The past of a queue or of the whole store, as points of equal length. */
export interface ChartReading {
  /** Milliseconds of one point. */
  readonly step: number
  readonly from: Instant
  /** The current instant: the last point is not over. */
  readonly until: Instant
  /** Only slots that were counted. No process counted during a gap. */
  readonly points: readonly ChartPoint[]
  /** Totals over the whole range, by name. */
  readonly queues: Readonly<Record<string, ChartTotals>>
  readonly types: Readonly<Record<string, ChartTotals>>
}

/** Counts of what happened, kept in the store for charts. */
export class Charts {
  readonly #session: Session
  readonly #queues: Queues
  readonly #records: ChartRecords
  readonly #fine = new Map<Instant, ChartSlot>()
  readonly #workers = new WorkerCounts()
  /** Everything since this instant is counted; null until the first poll has ended. */
  #completeSince: Instant | null = null
  #writtenUntil: Instant = 0
  #estimate = emptySlot()
  #spreadAt: Instant = 0
  #following: AbortController | null = null
  #isKept = false
  /** Monotonic. */
  #readAt = 0
  #caughtUp: Promise<void> = Promise.resolve()

  constructor(session: Session, queues: Queues) {
    this.#session = session
    this.#queues = queues
    this.#records = new ChartRecords(session)
  }

  /** Counts until `stop`. With `record`, minutes are also written to the store. */
  start({ record = true }: { readonly record?: boolean } = {}): this {
    this.#isKept = true
    return this.#begin(record)
  }

  #begin(record: boolean): this {
    if (this.#following !== null) return this
    const following = new AbortController()
    const signal = AbortSignal.any([following.signal, this.#session.events.closing])
    this.#following = following
    this.#caughtUp = new Promise((done) => {
      void this.#follow(signal, done).finally(done)
    })
    void this.#countDepths(signal)
    if (record) void this.#record(signal)
    return this
  }

  stop(): void {
    this.#following?.abort()
    this.#following = null
    this.#fine.clear()
    this.#workers.clear()
    this.#completeSince = null
  }

  /** Starts counting, without writing, unless it has started already. */
  async read({ range, ...filter }: ChartQuery): Promise<ChartReading> {
    const shape = Object.hasOwn(RANGES, range) ? RANGES[range] : undefined
    if (shape === undefined)
      throw new HoldfastError('INVALID_OPTION', `range must be one of ${CHART_RANGES.join(', ')}`, { field: 'range' })
    await this.#reading()
    const { step, points } = shape
    const until = this.#session.time.now()
    const from = slotStart(until, step) - (points - 1) * step
    const slots = await this.#slots(range, from)
    const starts = Array.from({ length: points }, (_, n) => from + n * step).filter((at) => slots.has(at))
    const whole = merged(starts.map((at) => slots.get(at)!))
    const { queues, types } = namesIn(whole)
    const { queue, type } = filter
    const totals = (names: readonly string[], of: (name: string) => ChartFilter): Record<string, ChartTotals> =>
      Object.fromEntries(names.map((name) => [name, totalsOf(whole, of(name))]))
    return {
      step,
      from,
      until,
      points: starts.map((at) => {
        const slot = slots.get(at)!
        return { at, ...totalsOf(slot, filter), depth: depthOf(slot, queue) }
      }),
      queues: totals(queues, (name) => ({ queue: name, ...(type === undefined ? null : { type }) })),
      types: totals(types, (name) => ({ type: name, ...(queue === undefined ? null : { queue }) })),
    }
  }

  /** What each worker has ended in the last five minutes. */
  async workers(): Promise<WorkerReading> {
    await this.#reading()
    return this.#workers.read(this.#session.time.now())
  }

  async #reading(): Promise<void> {
    this.#readAt = this.#session.clock.mono()
    this.#begin(false)
    await this.#caughtUp
  }

  async #slots(range: ChartRange, from: Instant): Promise<Slots> {
    if (range === '5m') return this.#counted(FINE, from)
    const recent = slotStart(this.#session.time.now() - HOUR, HOUR)
    const minutes = new Map([
      ...(await this.#records.read(MINUTES, range === '1h' ? from : recent)),
      ...this.#counted(MINUTE, from),
    ])
    if (range === '1h') return minutes
    // A slot that has not ended, or has just ended, is summed from its minutes.
    const tens = new Map([
      ...(await this.#records.read(TENS, range === '24h' ? from : recent)),
      ...grouped(minutes, TENS.slot, recent),
    ])
    if (range === '24h') return tens
    return new Map([...(await this.#records.read(HOURS, from)), ...grouped(tens, HOURS.slot, recent)])
  }

  /** The complete slots of this length from memory; the last one up to now. */
  #counted(length: number, from: Instant): Slots {
    const found = new Map<Instant, ChartSlot>()
    if (this.#completeSince === null) return found
    const now = this.#session.time.now()
    for (let at = slotStart(Math.max(from, this.#completeSince + length - 1), length); at <= now; at += length) {
      const parts: ChartSlot[] = []
      for (let part = at; part < at + length; part += FINE) parts.push(this.#fine.get(part) ?? emptySlot())
      found.set(at, { ...merged(parts), minutes: length / MINUTE })
    }
    return found
  }

  async #follow(signal: AbortSignal, caughtUp: () => void): Promise<void> {
    const { time, clock } = this.#session
    let failures = 0
    let sampler: Sampler | null = null
    while (!signal.aborted) {
      let rest = POLL_EVERY
      try {
        if (time.isOld) await time.anchor()
        sampler ??= await this.#catchUp()
        for await (const changes of sampler.poll()) for (const change of changes) this.#count(change)
        this.#spread()
        rest = sampler.rest
        failures = 0
        caughtUp()
        if (!this.#isKept && clock.mono() - this.#readAt > UNREAD) this.stop()
      } catch {
        // A reader gets the error of the store from its own call.
        failures++
      }
      await pause(clock, Math.max(rest, Math.min(POLL_EVERY * 2 ** failures, LONGEST_WAIT)), signal)
    }
  }

  /** Counts the last minutes from the histories, unless too much has changed. */
  async #catchUp(): Promise<Sampler> {
    const now = this.#session.time.now()
    const since = now - CAUGHT_UP
    this.#fine.clear()
    this.#workers.clear()
    this.#spreadAt = now
    let follower = new Follower(this.#session, {}, since)
    const polling = follower.poll({ most: MOST_CAUGHT_UP, isFirstLong: true })
    let page = await polling.next()
    for (; !page.done; page = await polling.next()) for (const change of page.value) this.#count(change)
    this.#completeSince = since
    if (page.value !== null) {
      this.#fine.clear()
      this.#workers.clear()
      this.#completeSince = this.#session.time.now()
      follower = new Follower(this.#session, {}, this.#completeSince)
    }
    this.#writtenUntil = slotStart(this.#completeSince + MINUTE - 1, MINUTE)
    return new Sampler(this.#session, {}, follower, MOST_FOLLOWED)
  }

  #count({ entry, task, weight }: TaskChange): void {
    const move = chartMoveOf(task, entry)
    if (move === null) return
    this.#workers.count(move, entry.at, weight)
    if (weight !== undefined) this.#estimate = withMove(this.#estimate, move, weight)
    else this.#add(entry.at, (slot) => withMove(slot, move))
  }

  /** What was estimated since the last poll, over the time since then. */
  #spread(): void {
    const now = this.#session.time.now()
    const since = Math.max(this.#spreadAt, now - CAUGHT_UP)
    this.#spreadAt = now
    if (Object.keys(this.#estimate.cells).length === 0) return
    const starts: Instant[] = []
    for (let at = slotStart(since, FINE); at <= now; at += FINE) starts.push(at)
    const part = scaled(this.#estimate, 1 / starts.length)
    for (const at of starts) this.#add(at, (slot) => merged([slot, part]))
    this.#estimate = emptySlot()
  }

  #add(at: Instant, change: (slot: ChartSlot) => ChartSlot): void {
    const start = slotStart(at, FINE)
    this.#fine.set(start, change(this.#fine.get(start) ?? emptySlot()))
  }

  async #countDepths(signal: AbortSignal): Promise<void> {
    const { clock, time } = this.#session
    while (!signal.aborted) {
      const began = clock.mono()
      try {
        const stats = await queueStats(this.#session, this.#queues, DEPTH_CAP)
        const depths = stats.map(({ queue, ready, running, scheduled, retrying }): [string, Depth] => [
          queue,
          { ready, running, later: scheduled + retrying },
        ])
        this.#add(time.now(), (slot) => withDepths(slot, Object.fromEntries(depths.slice(0, MOST_DEPTHS))))
      } catch {
        // The next round tries again.
      }
      await pause(clock, Math.max(DEPTH_EVERY, DEPTH_REST * (clock.mono() - began)), signal)
    }
  }

  async #record(signal: AbortSignal): Promise<void> {
    const { clock } = this.#session
    try {
      await this.#records.sweep()
    } catch {
      // The next start sweeps again.
    }
    while (!signal.aborted) {
      try {
        await this.#writeSettled(signal)
      } catch {
        // The minute is still in memory: the next round writes it.
      }
      await pause(clock, FINE, signal)
    }
  }

  async #writeSettled(signal: AbortSignal): Promise<void> {
    const now = this.#session.time.now()
    for (const start of this.#fine.keys()) if (start < now - KEPT_FINE) this.#fine.delete(start)
    if (this.#completeSince === null) return
    this.#completeSince = Math.max(this.#completeSince, now - KEPT_FINE + FINE)
    while (!signal.aborted && this.#writtenUntil + MINUTE + SETTLED_AFTER <= now) {
      const at = Math.max(this.#writtenUntil, slotStart(this.#completeSince + MINUTE - 1, MINUTE))
      await this.#records.write(at, this.#counted(MINUTE, at).get(at) ?? emptySlot(1))
      this.#writtenUntil = at + MINUTE
    }
  }
}
