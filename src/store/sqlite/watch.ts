/**
 * Notices that another process has written. The kernel tells of each write to the log; the write is visible to others a moment later, when it has
 * reached the disk, so the file is asked again until it is. Where the kernel cannot be asked, and to be sure where it can, the file
 * is asked now and then.
 */
import { type FSWatcher, watch } from 'node:fs'
import { mono } from './clock.ts'

export interface Watched {
  /** The log beside the file. */
  readonly log: string
  /** Changes when another connection has committed. */
  version(): number
  /** Monotonic: when this connection last has. */
  committedAt(): number
}

/** With the kernel's help: only to be sure. */
const SELDOM = 500
/** Without it: often while something happens, seldom while nothing does. */
const SOON = 10
const LATE = 50
const CALM_AFTER = 1_000
/** After a write to the log, how long to wait for it to be visible. Larger transactions are found by the next write, or seldom. */
const COMMIT_WITHIN = 50
/** One commit writes several times, and the kernel tells of our own writes too: what is told so soon after a commit is mostly of that commit. */
const SAME_WITHIN = 3
/** Timers count in milliseconds, and a commit takes about one: at first the thread itself waits, for so long in all and at a time. */
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
  /** Monotonic: until then ask again and again, because the kernel has told of a write that is not visible yet; null: it has not. */
  #askUntil: number | null = null

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
    this.#askUntil = null
  }

  /** null: this file system or this machine cannot. */
  #watchLog(): FSWatcher | null {
    try {
      const watcher = watch(this.#watched.log, { persistent: false }, () => this.#told())
      watcher.on('error', () => {
        watcher.close()
        if (this.#watcher === watcher) this.#watcher = null
      })
      return watcher
    } catch {
      return null
    }
  }

  #told(): void {
    if (!this.#isOn || this.#askUntil !== null) return
    const now = mono()
    const isKnown = now - Math.max(this.#changedAt, this.#watched.committedAt()) < SAME_WITHIN
    this.#askUntil = now + (isKnown ? SAME_WITHIN : COMMIT_WITHIN)
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
    if (this.#askUntil !== null && now < this.#askUntil) return 1
    this.#askUntil = null
    if (this.#watcher !== null) return SELDOM
    return now - this.#changedAt > CALM_AFTER ? LATE : SOON
  }

  /** True: another process had written. */
  #look(): boolean {
    try {
      const version = this.#watched.version()
      if (version === this.#version) return false
      this.#version = version
      this.#changedAt = mono()
      this.#askUntil = null
      this.#changed()
      return true
    } catch {
      // The next call to the store reports what is wrong with the file.
      return true
    }
  }
}

const still = new Int32Array(new SharedArrayBuffer(4))
