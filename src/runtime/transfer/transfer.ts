/**
 * Moves everything from one store to another: tasks with their histories and fences, idempotency keys, schedules, pauses. The
 * order of writes allows it to be killed at any point and run again: no task runs in both stores, and none is lost.
 */

import { HoldfastError } from '../../core/errors.ts'
import { keyIsLive } from '../../core/idempotency.ts'
import { isLastPage } from '../../core/storage/page-weight.ts'
import type { TaskRecord } from '../../core/task.ts'
import { MOVED_TAG, movedTag } from '../../core/transfer/transfer.ts'
import type { Query } from '../../store/store.ts'
import { pause } from '../clock.ts'
import { withPatience } from '../patience.ts'
import { sweep } from '../queues/look.ts'
import type { Session } from '../session.ts'
import { pagesOf } from '../tasks/pages.ts'
import { liveWorkers } from '../worker/registration.ts'
import { MoveBatch } from './batch.ts'
import { mustKeepKeys } from './detached-keys.ts'
import { copyQueues, MovePauses } from './pauses.ts'
import { MoveSchedules } from './schedules.ts'
import { MoveState } from './state.ts'

/** Options of `moveTo`. */
export interface MoveOptions {
  /** Allow workers to be live on the old store, and wait for the tasks that they hold. Default false: WORKERS_LIVE. */
  readonly live?: boolean
  /** Stops between two batches. The new store stays paused, and the same call continues where this one ended. */
  readonly signal?: AbortSignal
  /** Called after each batch, and while waiting for running tasks. */
  readonly onProgress?: (progress: MoveProgress) => void
}

/** How far a move to another store is. */
export interface MoveProgress {
  readonly moved: number
  /** How many tasks there were to move when the pass began. */
  readonly total: number
  /** Tasks that run in the old store. They are moved when they have ended. */
  readonly waiting: number
}

/** What a move to another store did. */
export interface MoveReport {
  /** Tasks moved by this call, without those of an earlier call that was cut short. */
  readonly moved: number
  /** Not copied: a task in the new store has the same key, type and input. */
  readonly deduplicated: number
  /** Copied without their idempotency key, which belongs to another task in the new store. */
  readonly withoutKey: number
  /** Moved keys whose task was already removed. */
  readonly keys: number
  readonly schedules: number
  /** Schedules not moved because the new store has one with the same id. */
  readonly schedulesKeptOut: readonly string[]
  /** Left in the old store: the new one has another task with this id. */
  readonly conflicts: readonly string[]
  /** `aborted`: the new store is still paused. */
  readonly stopped: 'aborted' | null
}

const EVERYTHING: Query = {}
const NOT_ARCHIVED: Query = {
  views: (['pending', 'running', 'completed', 'failed', 'cancelled', 'expired'] as const).map((status) => ({ status })),
}
const MANY = 1_000_000_000
/** How often running tasks are checked. */
const WAIT = 200
const KEYS_AT_ONCE = 500

export const moveBetween = async (from: Session, to: Session, options: MoveOptions = {}): Promise<MoveReport> => {
  if (!options.live) await mustBeQuiet(from)
  return new Move(from, to, await MoveState.begin(from, to), options).run()
}

const mustBeQuiet = async (from: Session): Promise<void> => {
  const workers = await liveWorkers(from)
  if (workers.length === 0) return
  const names = workers.slice(0, 5).map(({ id }) => id)
  throw new HoldfastError(
    'WORKERS_LIVE',
    `${workers.length === 1 ? 'a worker is' : `${workers.length} workers are`} live on ${from.store.address}: ${names.join(', ')}${workers.length > 5 ? ', …' : ''}`,
    { workers: workers.map(({ id }) => id) },
  )
}

interface Pass {
  /** Tasks that this pass found to move. */
  readonly found: number
  readonly running: ReadonlySet<string>
}

class Move {
  readonly #from: Session
  readonly #to: Session
  readonly #state: MoveState
  readonly #options: MoveOptions
  readonly #pauses: MovePauses
  readonly #schedules: MoveSchedules
  readonly #batch: MoveBatch
  readonly #begunAt: number
  #queues: readonly string[] = []
  #keys = 0
  #total = 0

  constructor(from: Session, to: Session, state: MoveState, options: MoveOptions) {
    this.#from = from
    this.#to = to
    this.#state = state
    this.#options = options
    this.#pauses = new MovePauses(to, state.id, from.store.address)
    this.#schedules = new MoveSchedules(from, to, state.startedAt)
    this.#batch = new MoveBatch(from, to)
    this.#begunAt = from.clock.mono()
  }

  async run(): Promise<MoveReport> {
    this.#queues = await copyQueues(this.#from, this.#to)
    await this.#pauses.hold(this.#queues, this.#options.signal)
    await this.#batch.clear(this.#state.underWay)
    let pass = await this.#pass(EVERYTHING)
    // Most tasks have moved, so the rest is short, and so is the time in which no slot fires.
    if (!this.#isAborted) await this.#schedules.close()
    for (let isDone = false; !isDone && !this.#isAborted; ) {
      if (pass.found === 0 && pass.running.size > 0) await this.#waitForEnds(pass.running)
      pass = await this.#pass(NOT_ARCHIVED)
      const waiting = await this.#schedules.open(this.#batch.report.conflicts)
      if (pass.found > 0 || pass.running.size > 0 || this.#isAborted) continue
      // A task may have been archived meanwhile. Checked last, because it reads all archived copies again.
      pass = await this.#pass(EVERYTHING)
      await this.#batch.clear([...this.#batch.unclear])
      isDone = pass.found === 0 && pass.running.size === 0 && waiting === 0 && this.#batch.unclear.size === 0
    }
    if (this.#isAborted) return this.#report('aborted')
    // Throws if another process has taken over, before anything is resumed.
    await this.#state.announce([])
    await this.#moveDetachedKeys()
    await this.#pauses.release(this.#from)
    await this.#state.end()
    return this.#report(null)
  }

  get #isAborted(): boolean {
    return this.#options.signal?.aborted ?? false
  }

  /** Tries each matching task once. */
  async #pass(which: Query): Promise<Pass> {
    let found = 0
    const running = new Set<string>()
    const left = await withPatience(this.#from, () => this.#from.store.count(NOT_ARCHIVED, { cap: MANY, now: null }))
    this.#total = this.#batch.gone + left.count
    const tag = movedTag(this.#to.store.address)
    // The next page is read while this one is moved.
    let moving = Promise.resolve()
    try {
      for await (const page of pagesOf(this.#from, which)) {
        const going = page.filter((task) => this.#mayGo(task, tag)).map(({ id }) => id)
        for (const { id, status } of page) if (status === 'running') running.add(id)
        const tasks = going.length === 0 ? [] : await this.#batch.ready(going)
        await moving
        if (this.#isAborted) break
        if (found > 0) this.#tell(running.size)
        found += tasks.length
        moving = this.#moveSome(tasks)
        moving.catch(() => {})
      }
    } finally {
      await moving
    }
    if (found > 0) this.#tell(running.size)
    return { found, running }
  }

  /** A first check on the listed record. Only the history tells for certain whether the task was moved already. */
  #mayGo({ id, status, tags }: TaskRecord, tag: string): boolean {
    if (status === 'running' || this.#batch.report.conflicts.has(id)) return false
    return !(status === 'archived' && tags?.[MOVED_TAG] === tag)
  }

  async #moveSome(tasks: readonly TaskRecord[]): Promise<void> {
    if (tasks.length === 0) return
    await this.#pauses.hold(new Set(tasks.map(({ queue }) => queue)), this.#options.signal)
    if (this.#isAborted) return
    await this.#state.announce([...new Set([...this.#batch.unclear, ...tasks.map(({ id }) => id)])])
    await this.#batch.move(tasks)
  }

  /** Waits until one of them has stopped running. Leases of dead workers are taken back, as any worker would do. */
  async #waitForEnds(running: ReadonlySet<string>): Promise<void> {
    const { store, clock } = this.#from
    for (;;) {
      this.#tell(running.size)
      await pause(clock, WAIT, this.#options.signal)
      if (this.#isAborted) return
      if (clock.mono() - this.#begunAt >= store.leaseTtl) await this.#lookAfterTheDead()
      const [first] = running
      const { tasks } = await withPatience(this.#from, () =>
        store.list({ views: [{ status: 'running' }] }, PAGE_OF_RUNNING),
      )
      const still = new Set(tasks.map(({ id }) => id))
      if (isLastPage(tasks, PAGE_OF_RUNNING.limit) ? [...running].some((id) => !still.has(id)) : !still.has(first!))
        return
    }
  }

  async #lookAfterTheDead(): Promise<void> {
    for (const queue of this.#queues)
      await withPatience(this.#from, () => sweep(this.#from, { queue, by: this.#from.name }))
  }

  async #moveDetachedKeys(): Promise<void> {
    const from = this.#from.store.detachedKeys
    let after: string | undefined
    while (from) {
      const page = { limit: KEYS_AT_ONCE, ...(after === undefined ? null : { after }) }
      const keys = await withPatience(this.#from, () => from.list(page))
      if (keys.length === 0) return
      after = keys.at(-1)!.key
      const live = keys.filter((key) => keyIsLive(key, false, this.#from.time.now()))
      const put = await withPatience(this.#to, () => mustKeepKeys(this.#to.store).put(live, null))
      this.#keys += put.filter((isPut) => isPut).length
    }
  }

  #tell(waiting: number): void {
    this.#options.onProgress?.({ moved: this.#batch.gone, total: this.#total, waiting })
  }

  #report(stopped: MoveReport['stopped']): MoveReport {
    const { moved, deduplicated, withoutKey, conflicts } = this.#batch.report
    const schedules = this.#schedules.report
    return {
      moved,
      deduplicated,
      withoutKey,
      keys: this.#keys,
      schedules: schedules.moved,
      schedulesKeptOut: schedules.keptOut,
      conflicts: [...conflicts],
      stopped,
    }
  }
}

const PAGE_OF_RUNNING = { order: 'oldest', limit: 1_000, now: null } as const
