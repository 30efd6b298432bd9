/**
 * Everything of one store to another: tasks with their histories and fences, idempotency keys, schedules, pauses. What is
 * written in which order is chosen so that it can be killed anywhere and run again: no task runs on both sides, none is lost.
 */

import { HoldfastError } from '../../core/errors.ts'
import { keyIsLive } from '../../core/idempotency.ts'
import { isLastPage } from '../../core/page-weight.ts'
import type { TaskRecord } from '../../core/task.ts'
import { MOVED_TAG, movedTag } from '../../core/transfer.ts'
import type { Query } from '../../store/store.ts'
import { pause } from '../clock.ts'
import { withPatience } from '../patience.ts'
import type { Session } from '../session.ts'
import { sweep } from '../tasks/look.ts'
import { pagesOf } from '../tasks/pages.ts'
import { liveWorkers } from '../worker/registration.ts'
import { MoveBatch } from './batch.ts'
import { mustKeepKeys } from './detached-keys.ts'
import { copyQueues, MovePauses } from './pauses.ts'
import { MoveSchedules } from './schedules.ts'
import { MoveState } from './state.ts'

export interface MoveOptions {
  /** Also while workers are live on the old store: what they hold is waited for. Default false: refused. */
  readonly live?: boolean
  /** Stops between two batches: the new store stays paused, and the same call goes on where this ended. */
  readonly signal?: AbortSignal
  /** Called after each batch, and while it waits for running tasks. */
  readonly onProgress?: (progress: MoveProgress) => void
}

export interface MoveProgress {
  readonly moved: number
  /** How many there are to move, as of the beginning of the pass. */
  readonly total: number
  /** Running in the old store: they are moved when they have ended. */
  readonly waiting: number
}

export interface MoveReport {
  /** By this call; those of an earlier one that was cut short are not among them. */
  readonly moved: number
  /** Not copied: a task of the new store with the same key, type and input stands for it. */
  readonly deduplicated: number
  /** Copied without its idempotency key, which stands for another task of the new store. */
  readonly withoutKey: number
  /** Keys that had outlived their tasks. */
  readonly keys: number
  readonly schedules: number
  /** Schedules that the new store had under the same id already: those were left as they are. */
  readonly schedulesKeptOut: readonly string[]
  /** Left in the old store: the new one has another task under this id. */
  readonly conflicts: readonly string[]
  /** `aborted`: the new store is still paused. */
  readonly stopped: 'aborted' | null
}

const EVERYTHING: Query = {}
const NOT_ARCHIVED: Query = {
  views: (['pending', 'running', 'completed', 'failed', 'cancelled', 'expired'] as const).map((status) => ({ status })),
}
const MANY = 1_000_000_000
/** How often running tasks are looked at. */
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
  /** Tasks that were there to be moved. */
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
    // The bulk has moved: from here on it is short, and so is the time in which no slot fires.
    if (!this.#isAborted) await this.#schedules.close()
    for (let isDone = false; !isDone && !this.#isAborted; ) {
      if (pass.found === 0 && pass.running.size > 0) await this.#waitForEnds(pass.running)
      pass = await this.#pass(NOT_ARCHIVED)
      const waiting = await this.#schedules.open(this.#batch.report.conflicts)
      if (pass.found > 0 || pass.running.size > 0 || this.#isAborted) continue
      // A task may have been archived in the meantime. Checked last, because it reads all archived copies again.
      pass = await this.#pass(EVERYTHING)
      isDone = pass.found === 0 && pass.running.size === 0 && waiting === 0
    }
    if (this.#isAborted) return this.#report('aborted')
    // Another process that has taken over is told of here, before anything is resumed.
    await this.#state.announce([])
    await this.#moveDetachedKeys()
    await this.#pauses.release(this.#from)
    await this.#state.end()
    return this.#report(null)
  }

  get #isAborted(): boolean {
    return this.#options.signal?.aborted ?? false
  }

  /** Each of these once. */
  async #pass(which: Query): Promise<Pass> {
    let found = 0
    const running = new Set<string>()
    const left = await withPatience(this.#from, () => this.#from.store.count(NOT_ARCHIVED, { cap: MANY, now: null }))
    this.#total = this.#batch.gone + left.count
    const tag = movedTag(this.#to.store.address)
    // While some are moved, the next ones are read.
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

  /** By what a list tells; whether it has left is told for sure by its history. */
  #mayGo({ id, status, tags }: TaskRecord, tag: string): boolean {
    if (status === 'running' || this.#batch.report.conflicts.has(id)) return false
    return !(status === 'archived' && tags?.[MOVED_TAG] === tag)
  }

  async #moveSome(tasks: readonly TaskRecord[]): Promise<void> {
    if (tasks.length === 0) return
    await this.#pauses.hold(new Set(tasks.map(({ queue }) => queue)), this.#options.signal)
    if (this.#isAborted) return
    await this.#state.announce(tasks.map(({ id }) => id))
    await this.#batch.move(tasks)
  }

  /** Until one of them runs no more. What a dead worker held is taken from it, as any worker would. */
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
