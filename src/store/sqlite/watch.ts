/**
 * Notices that another process has written. The kernel reports each write to the log. The transaction becomes visible a moment later, when it
 * has reached the disk, so the file is polled until it is. Where the kernel cannot report writes, and as a safety net where it can, the file is
 * polled all the time, but less often.
 */
import { type FSWatcher, watch } from 'node:fs'
import { mono } from './file/clock.ts'

export interface Watched {
  /** The log beside the file. */
  readonly log: string
  /** A number that changes when another connection has committed. */
  version(): number
  /** Monotonic: when this connection last committed. */
  committedAt(): number
}

/** The interval of polls while the kernel reports writes: a safety net. */
const SELDOM = 500
/** The intervals while it cannot: short while the file is busy, long while it is idle. */
const SOON = 10
const LATE = 50
const CALM_AFTER = 1_000
/** After a write to the log, poll this long for the commit. A longer transaction is found by its next write, or by the safety net. */
const COMMIT_WITHIN = 50
/** One commit writes several times, and the kernel reports our own writes too: a report this soon after our commit is mostly about that commit. */
const SAME_WITHIN = 3
/** A commit takes about a millisecond, which is the resolution of a timer. So the thread first blocks in steps of BLOCK_STEP milliseconds, for BLOCK_FOR in total. */
const BLOCK_FOR = 1
const BLOCK_STEP = 0.15

export class Watch {
  readonly #watched: Watched
  readonly #changed: () => void
  #isOn = false
  #watcher: FSWatcher | null = null
  #timer: NodeJS.Timeout | null = null
  #version = 0
  #changedAt = 0
  /** Monotonic: poll every millisecond until then, because the kernel has reported a write that is not visible yet; null if there is none. */
  #pollUntil: number | null = null

  constructor(watched: Watched, changed: () => void) {
    this.#watched = watched
    this.#changed = changed
  }

  set(on: boolean): void {
    this.#stop()
    if (!on) return
    this.#isOn = true
    this.#version = this.#watched.version()
    this.#watcher = this.#watchLog()
    this.#next()
  }

  #stop(): void {
    this.#isOn = false
    if (this.#timer) clearTimeout(this.#timer)
    this.#timer = null
    this.#watcher?.close()
    this.#watcher = null
    this.#pollUntil = null
  }

  /** null if this file system or machine cannot watch files. */
  #watchLog(): FSWatcher | null {
    try {
      const watcher = watch(this.#watched.log, { persistent: false }, () => this.#onWrite())
      watcher.on('error', () => {
        watcher.close()
        if (this.#watcher === watcher) this.#watcher = null
      })
      return watcher
    } catch {
      return null
    }
  }

  #onWrite(): void {
    if (!this.#isOn || this.#pollUntil !== null) return
    const now = mono()
    const isKnown = now - Math.max(this.#changedAt, this.#watched.committedAt()) < SAME_WITHIN
    this.#pollUntil = now + (isKnown ? SAME_WITHIN : COMMIT_WITHIN)
    while (!this.#look() && !isKnown && mono() - now < BLOCK_FOR) Atomics.wait(still, 0, 0, BLOCK_STEP)
    this.#next()
  }

  #next(): void {
    if (!this.#isOn) return
    if (this.#timer) clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#look()
      this.#next()
    }, this.#wait())
  }

  #wait(): number {
    const now = mono()
    if (this.#pollUntil !== null && now < this.#pollUntil) return 1
    this.#pollUntil = null
    if (this.#watcher !== null) return SELDOM
    return now - this.#changedAt > CALM_AFTER ? LATE : SOON
  }

  /** Returns true if another process has written. */
  #look(): boolean {
    try {
      const version = this.#watched.version()
      if (version === this.#version) return false
      this.#version = version
      this.#changedAt = mono()
      this.#pollUntil = null
      this.#changed()
      return true
    } catch {
      // The next call to the store reports what is wrong with the file.
      return true
    }
  }
}

const still = new Int32Array(new SharedArrayBuffer(4))
