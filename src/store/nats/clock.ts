/** The server's time, read now and then and carried forward by the monotonic clock. It goes back only when the server's clock was set back. */
import type { StreamInfo } from '@nats-io/jetstream'
import type { Instant } from '../../core/task.ts'
import type { Connected } from './connection/connection.ts'
import type { Subjects } from './subjects.ts'

interface Anchor {
  readonly at: Instant
  /** Monotonic. */
  readonly mono: number
  /** By how much the wall clock was ahead of the monotonic one when the server was asked. */
  readonly lead: number
  readonly uncertainty: number
}

/** A quartz clock drifts by less than this fraction. */
const DRIFT = 0.0002
const ASK_EVERY = 10_000
/**
 * On Linux the monotonic clock stands still while the machine sleeps, and the wall clock does not. If they differ by this much more than
 * before, the machine has slept, or its wall clock was set: the server knows.
 */
const SLEPT = 500
/** A machine may sleep again while it asks. */
const TRIES = 3
/** A clock that is this far behind what it showed was set back. */
const SET_BACK = 5_000
const CLOCK_KEY = 'clock'

export class ServerClock {
  readonly #connected: Connected
  readonly #subjects: Subjects
  readonly #info: () => Promise<StreamInfo>
  #anchor: Anchor | null = null
  #asking: Promise<Anchor> | null = null
  #latest = 0
  #callerTime: Instant | null = null

  /** `info` asks for the facts about the bucket's stream. */
  constructor(connected: Connected, subjects: Subjects, info: () => Promise<StreamInfo>) {
    this.#connected = connected
    this.#subjects = subjects
    this.#info = info
  }

  async now(): Promise<{ at: Instant; uncertainty: number }> {
    for (let tries = 0; tries < TRIES && this.#isOld(); tries++) await this.ask()
    return this.#from(this.#anchor!)
  }

  #isOld(): boolean {
    if (this.#anchor === null) return true
    const { mono, lead } = this.#anchor
    return performance.now() - mono > ASK_EVERY || Math.abs(leadNow() - lead) > SLEPT
  }

  /** The time by which a hint is due: the one that the last caller passed, else the server's. */
  get hintTime(): Instant {
    if (this.#callerTime !== null) return this.#callerTime
    return this.#anchor === null ? 0 : this.#from(this.#anchor).at
  }

  /** null: use the server's time. */
  setCallerTime(now: Instant | null): void {
    this.#callerTime = now
  }

  ask(): Promise<Anchor> {
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = null
    })
    return this.#asking
  }

  async #ask(): Promise<Anchor> {
    const begun = performance.now()
    const lead = leadNow()
    const at = await this.#read()
    const mono = performance.now()
    // The server read its clock at some moment between request and reply.
    const uncertainty = Math.ceil((mono - begun) / 2) + 1
    const anchor = { at: at + uncertainty, mono, lead, uncertainty }
    this.#anchor = anchor
    return anchor
  }

  /** Since 2.10 replies carry the server's time. Before that, only messages do. */
  async #read(): Promise<Instant> {
    const { jsm, requests } = this.#connected
    const { ts } = (await this.#info()) as StreamInfo & { readonly ts?: string }
    if (ts !== undefined) return Date.parse(ts)
    const seq = await requests.write(this.#subjects.ofKey(CLOCK_KEY), '')
    const message = await jsm.streams.getMessage(this.#subjects.kv, { seq })
    // If another process has overwritten the message, the time of its write is as good.
    if (message !== null) return message.time.getTime()
    const last = await jsm.streams.getMessage(this.#subjects.kv, {
      last_by_subj: this.#subjects.ofKey(CLOCK_KEY),
    })
    return last!.time.getTime()
  }

  #from({ at, mono, uncertainty }: Anchor): { at: Instant; uncertainty: number } {
    const elapsed = performance.now() - mono
    const carried = Math.floor(at + elapsed)
    this.#latest = this.#latest - carried > SET_BACK ? carried : Math.max(this.#latest, carried)
    // A slow reading may have shown a time that is ahead. What is shown stays there until the server's time has come so far.
    const ahead = this.#latest - carried
    return { at: this.#latest, uncertainty: ahead + uncertainty + Math.ceil(elapsed * DRIFT) }
  }
}

const leadNow = (): number => Date.now() - performance.now()
