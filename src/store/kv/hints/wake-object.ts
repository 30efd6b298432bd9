/**
 * One small object that announces hints and changes of watched documents. Idle processes read it with a conditional GET. It
 * only saves time: a process that misses an announcement finds the hint by listing.
 */
import type { Entry, KeyValue, Mark } from '../access/key-value.ts'
import type { Timers } from '../access/timers.ts'
import { WAKE } from '../records/names.ts'
import {
  type Announcement,
  addToWake,
  changesBetween,
  encodeWake,
  parseWake,
  type WakeBody,
  type WakeChanges,
} from './wake-body.ts'

/** The object as this process last read or wrote it. */
interface Copy {
  /** null: the object does not exist. */
  readonly mark: Mark | null
  readonly body: WakeBody | null
}

/** The shortest time between two writes of one process, and the same when a write announces several tasks. */
const WRITE_EVERY = 400
const WRITE_SEVERAL_EVERY = 200
const SEVERAL = 4
/** The longest time between two writes after failures and conflicts. */
const LONGEST_WAIT = 5_000
/** Names that wait to be written. Beyond these only the number is announced. */
const MOST_PENDING = 200

export class WakeObject {
  readonly #kv: KeyValue
  readonly #timers: Timers
  readonly #onChanges: (changes: WakeChanges) => void
  #copy: Copy | null = null
  #hints: string[] = []
  #unnamed = 0
  #documents = 0
  #writing: Promise<void> | null = null
  #cancelWait: (() => void) | null = null
  #wroteAt = Number.NEGATIVE_INFINITY
  #wait = WRITE_EVERY
  #isClosed = false

  constructor(kv: KeyValue, timers: Timers, onChanges: (changes: WakeChanges) => void) {
    this.#kv = kv
    this.#timers = timers
    this.#onChanges = onChanges
  }

  /** Differs after every change of a watched document that this process has seen. */
  get documents(): string {
    const body = this.#copy?.body
    return body === undefined || body === null ? '' : `${body.epoch} ${body.documents}`
  }

  /** Reads the object and reports what has changed, if anything. Rejects if the server does not answer. */
  async read(): Promise<boolean> {
    const known = this.#copy
    const entry = await this.#get(known?.mark ?? null)
    // A write of this process came in between and has already reported these changes.
    if (entry === 'same' || this.#copy !== known) return false
    this.#observe(entry)
    // As long as the object does not exist, nothing has changed.
    return (entry?.mark ?? null) !== (known?.mark ?? null)
  }

  #get(mark: Mark | null): Promise<Entry | null | 'same'> {
    if (mark !== null && this.#kv.getChanged !== undefined) return this.#kv.getChanged(WAKE, mark)
    return this.#kv.get(WAKE)
  }

  #observe(entry: Entry | null): void {
    const before = this.#copy
    const body = entry === null ? null : parseWake(entry.value)
    this.#copy = { mark: entry?.mark ?? null, body }
    // The first read is not a change: no listener has relied on the object before.
    if (before === null || (body === null && before.body === null)) return
    if (body === null) this.#onChanges({ hints: null, documentsChanged: true })
    else this.#onChanges(changesBetween(before.body, body))
  }

  /** Never fails. The caller does not wait. */
  announce(hints: readonly string[]): void {
    this.#hints.push(...hints)
    const surplus = this.#hints.length - MOST_PENDING
    if (surplus > 0) {
      this.#hints.splice(0, surplus)
      this.#unnamed += surplus
    }
    this.#writeSoon()
  }

  announceDocuments(): void {
    this.#documents++
    this.#writeSoon()
  }

  #writeSoon(): void {
    if (this.#writing !== null || this.#isClosed || this.#isEmpty) return
    this.#cancelWait?.()
    const every = this.#wait === WRITE_EVERY && this.#hints.length >= SEVERAL ? WRITE_SEVERAL_EVERY : this.#wait
    const wait = this.#wroteAt + every - this.#timers.mono()
    this.#cancelWait = null
    if (wait <= 0) this.#begin()
    else
      this.#cancelWait = this.#timers.after(wait, () => {
        this.#cancelWait = null
        this.#begin()
      })
  }

  get #isEmpty(): boolean {
    return this.#hints.length === 0 && this.#unnamed === 0 && this.#documents === 0
  }

  #begin(): void {
    this.#wroteAt = this.#timers.mono()
    this.#writing = this.#write().then((isWritten) => {
      // After a conflict, throttling or lost contact the next write waits longer.
      this.#wait = isWritten ? WRITE_EVERY : Math.min(LONGEST_WAIT, this.#wait * 2)
      this.#writing = null
      this.#writeSoon()
    })
  }

  /** Writes everything that waits, from the known copy, and after a conflict once more from a fresh one. */
  async #write(): Promise<boolean> {
    const added: Announcement = { hints: this.#hints, unnamed: this.#unnamed, documents: this.#documents }
    this.#hints = []
    this.#unnamed = 0
    this.#documents = 0
    try {
      if (this.#copy === null) this.#observe(await this.#kv.get(WAKE))
      if (await this.#put(added)) return true
      this.#observe(await this.#kv.get(WAKE))
      if (await this.#put(added)) return true
    } catch {
      // It is unclear whether this was written, so the next write reads first.
      this.#copy = this.#copy === null ? null : { ...this.#copy, mark: null }
    }
    this.#requeue(added)
    return false
  }

  async #put(added: Announcement): Promise<boolean> {
    const copy = this.#copy!
    const body = addToWake(copy.body, added)
    const text = encodeWake(body)
    const mark = copy.mark === null ? await this.#kv.create(WAKE, text) : await this.#kv.update(WAKE, text, copy.mark)
    if (mark === null) return false
    // A read that ended meanwhile saw an older state than this write.
    this.#copy = { mark, body }
    return true
  }

  #requeue({ hints, unnamed, documents }: Announcement): void {
    this.#unnamed += unnamed
    this.#documents += documents
    this.#hints = [...hints, ...this.#hints]
    this.announce([])
  }

  /** Writes once what still waits. */
  async close(): Promise<void> {
    this.#cancelWait?.()
    this.#cancelWait = null
    this.#isClosed = true
    await this.#writing
    if (!this.#isEmpty) await this.#write()
  }
}
