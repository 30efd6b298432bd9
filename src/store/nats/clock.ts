/** The server's time, asked for now and then and carried on by the monotonic clock in between. Never goes back. */
import type { StreamInfo } from '@nats-io/jetstream'
import type { Instant } from '../../core/task.ts'
import type { Connected } from './connection.ts'
import type { Subjects } from './subjects.ts'

interface Anchor {
  readonly at: Instant
  /** Monotonic. */
  readonly mono: number
  readonly uncertainty: number
}

/** A quartz drifts by less than this share. */
const DRIFT = 0.0002
const ASK_EVERY = 10_000
const CLOCK_KEY = 'clock'

export class ServerClock {
  readonly #connected: Connected
  readonly #subjects: Subjects
  #anchor: Anchor | null = null
  #asking: Promise<Anchor> | null = null
  #latest = 0
  #given: Instant | null = null

  constructor(connected: Connected, subjects: Subjects) {
    this.#connected = connected
    this.#subjects = subjects
  }

  async now(): Promise<{ at: Instant; uncertainty: number }> {
    const anchor = this.#anchor
    const isOld = anchor === null || performance.now() - anchor.mono > ASK_EVERY
    return this.#from(isOld ? await this.ask() : anchor)
  }

  /** What counts as now for a hint: the time that the last caller gave, else the server's. */
  get seen(): Instant {
    if (this.#given !== null) return this.#given
    return this.#anchor === null ? 0 : this.#from(this.#anchor).at
  }

  /** null: the server's own. */
  see(now: Instant | null): void {
    this.#given = now
  }

  ask(): Promise<Anchor> {
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = null
    })
    return this.#asking
  }

  async #ask(): Promise<Anchor> {
    const begun = performance.now()
    const at = await this.#read()
    const mono = performance.now()
    // Somewhere between question and answer.
    const uncertainty = Math.ceil((mono - begun) / 2) + 1
    const anchor = { at: at + uncertainty, mono, uncertainty }
    this.#anchor = anchor
    return anchor
  }

  /** Since 2.10 an answer has its time; before, only a message has. */
  async #read(): Promise<Instant> {
    const { jsm, requests } = this.#connected
    const { ts } = (await jsm.streams.info(this.#subjects.truth)) as StreamInfo & { readonly ts?: string }
    if (ts !== undefined) return Date.parse(ts)
    const seq = await requests.write(this.#subjects.ofKey(CLOCK_KEY), '')
    const message = await jsm.streams.getMessage(this.#subjects.truth, { seq })
    // Written over by another process meanwhile: then that is the time.
    if (message !== null) return message.time.getTime()
    const last = await jsm.streams.getMessage(this.#subjects.truth, {
      last_by_subj: this.#subjects.ofKey(CLOCK_KEY),
    })
    return last!.time.getTime()
  }

  #from({ at, mono, uncertainty }: Anchor): { at: Instant; uncertainty: number } {
    const elapsed = performance.now() - mono
    this.#latest = Math.max(this.#latest, Math.floor(at + elapsed))
    return { at: this.#latest, uncertainty: uncertainty + Math.ceil(elapsed * DRIFT) }
  }
}
