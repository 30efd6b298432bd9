/** The dead letters: tasks that failed permanently. They are not stored separately; they are the tasks with status failed. */

import { HoldfastError } from '../../core/errors.ts'
import { type Fingerprint, fingerprintOf } from '../../core/observe/fingerprint.ts'
import { Task } from '../../core/observe/task-view.ts'
import { checkInteger, type InstantInput, parseInstant } from '../../core/submission.ts'
import type { Instant, TaskRecord } from '../../core/task.ts'
import { type Duration, parseDuration } from '../../core/values/durations.ts'
import { checkOptionNames } from '../../core/values/option-names.ts'
import { newOp, type Session } from '../session.ts'
import { type ListOptions, listTasks, mustSayWhich, type TaskPage } from '../tasks/inspect.ts'
import type { EachResult } from '../tasks/move-each.ts'
import type { Waiting } from '../tasks/waiting.ts'
import { BATCH, Bulk, type BulkOptions, type BulkReport } from './bulk.ts'
import { type Purged, purgeBatch } from './purge.ts'
import { type Replay, replayBatch } from './replay.ts'
import { type DeadQuery, Selection, type Which } from './selection.ts'

/** Dead letters with the same error. */
export interface DeadGroup extends Fingerprint {
  /** How many dead letters have this error. */
  readonly count: number
  /** When the first of them died. */
  readonly firstSeenAt: Instant
  /** When the latest of them died. */
  readonly lastSeenAt: Instant
  /** The types of their tasks. */
  readonly types: readonly string[]
  /** The most recent one. */
  readonly sample: Task
}

/** Dead letters grouped by error, and how many were read for it. */
export interface DeadGroups {
  /** Largest first. */
  readonly groups: readonly DeadGroup[]
  /** How many dead letters were read, the newest first. */
  readonly scanned: number
  /** There are more dead letters than were scanned, so the counts are lower bounds. */
  readonly capped: boolean
}

/** How dead letters are replayed: at which rate, with which canaries, as themselves or as new tasks. */
export interface ReplayOptions extends BulkOptions {
  /** Maximum rate, in tasks per second. */
  readonly rate?: number
  /** Replay this many first and wait for them. Unless all of them complete, the others are left alone. */
  readonly canary?: number
  /** How long to wait for the canaries. Default 10 minutes. */
  readonly canaryTimeout?: Duration
  /** Replay each as a new task with a new id and key. The old task is archived, and the two are linked. */
  readonly asNew?: boolean
  /** Forget the recorded steps and signals, so that every step runs again. Default false: recorded steps do not run again. */
  readonly fresh?: boolean
  /** The expiry of the replayed tasks. Default: they do not expire. */
  readonly ttl?: Duration
  /** The same as an instant. */
  readonly expiresAt?: InstantInput
}

/** What a replay did. */
export interface ReplayReport extends BulkReport {
  /** One result per task that was tried: the task that will run, or the error. */
  readonly results: readonly EachResult[]
  /** What became of the canaries; null if there were none. */
  readonly canary: { readonly replayed: number; readonly failed: readonly string[] } | null
}

/** How many dead letters were removed. */
export interface PurgeReport extends BulkReport {
  readonly results: readonly Purged[]
}

/** Reads, replays and removes dead letters. */
export class DeadLetters {
  readonly #session: Session
  readonly #waiting: Waiting

  constructor(session: Session, waiting: Waiting) {
    this.#session = session
    this.#waiting = waiting
  }

  /** `group` is a fingerprint from `groups`; the group of the task is `taskGroup`. */
  async list(
    options: Omit<ListOptions, 'status' | 'group'> & { readonly group?: string; readonly taskGroup?: string } = {},
  ): Promise<TaskPage> {
    const { group, taskGroup, ...rest } = options
    const query = { ...rest, ...(taskGroup === undefined ? null : { group: taskGroup }) }
    if (group === undefined) return listTasks(this.#session, { ...query, status: 'failed' })
    const found: Task[] = []
    const limit = checkInteger(query.limit ?? 100, 'limit', 1, 1_000)
    let cursor = query.cursor
    // The store does not know groups: read pages until enough tasks of this one are found.
    for (;;) {
      const page = await listTasks(this.#session, {
        ...query,
        status: 'failed',
        limit: PAGE,
        ...(cursor === undefined ? null : { cursor }),
      })
      for (const task of page.tasks) {
        if (fingerprintOf(task.lastError).fingerprint !== group) continue
        if (found.length === limit) return { tasks: found, cursor: found.at(-1)!.id }
        found.push(task)
      }
      if (page.cursor === null) return { tasks: found, cursor: null }
      cursor = page.cursor
    }
  }

  /** Groups dead letters by error: its name, and its message without numbers, ids and quoted text. Scans at most `cap`, newest first. */
  async groups(query: DeadQuery = {}, options: { readonly cap?: number } = {}): Promise<DeadGroups> {
    const groups = new Map<string, Tally>()
    const letters = new Selection(this.#session, query, options.cap, 'newest')
    for (let batch = await letters.next(BATCH); batch.length > 0; batch = await letters.next(BATCH)) {
      for (const letter of batch) if ('record' in letter) count(groups, letter.record)
    }
    return {
      groups: [...groups.values()].map(told).sort((a, b) => b.count - a.count || b.lastSeenAt - a.lastSeenAt),
      scanned: letters.scanned,
      capped: letters.isCapped,
    }
  }

  /** Replays one task, several, a group (`{ group: fingerprint }`) or all that match. Each has its own result. */
  async replay(which: Which, options: ReplayOptions = {}): Promise<ReplayReport> {
    checkOptionNames(options, REPLAY_OPTIONS, 'replay')
    const { asNew = false, fresh = false, dryRun = false, canary } = options
    const replay: Replay = { op: newOp(), asNew, fresh, expiresAt: expiryOf(options) }
    const canaryTimeout = parseDuration(options.canaryTimeout ?? '10m', 'canaryTimeout')
    const trial = canary === undefined ? 0 : checkInteger(canary, 'canary', 1, 1_000)
    const bulk = new Bulk(this.#session, this.#select(which, options.cap), options, options.rate)
    const results: EachResult[] = []
    const move = async (dead: readonly TaskRecord[]): Promise<readonly EachResult[]> =>
      replayBatch(this.#session, dead, replay)
    if (dryRun) return { ...mustHaveGroup(which, await bulk.count()), results, canary: null }
    let canaries: readonly string[] = []
    while (canaries.length < trial && (await bulk.step(trial - canaries.length, move, results)))
      canaries = results.flatMap((one) => ('task' in one ? [one.task.id] : []))
    const failed = trial === 0 ? [] : await this.#failedOf(canaries, canaryTimeout, options.signal)
    if (failed.length > 0) bulk.stop('canary')
    while (await bulk.step(BATCH, move, results));
    mustHaveGroup(which, bulk.report)
    return { ...bulk.report, results, canary: trial === 0 ? null : { replayed: canaries.length, failed } }
  }

  /** Removes dead letters and their idempotency keys permanently. */
  async purge(which: Which, options: BulkOptions = {}): Promise<PurgeReport> {
    checkOptionNames(options, BULK_OPTIONS, 'purge')
    const bulk = new Bulk(this.#session, this.#select(which, options.cap), options)
    const results: Purged[] = []
    if (options.dryRun) return { ...mustHaveGroup(which, await bulk.count()), results }
    while (await bulk.step(BATCH, (dead) => purgeBatch(this.#session, dead), results));
    return { ...mustHaveGroup(which, bulk.report), results }
  }

  #select(which: Which, cap?: number): Selection {
    if (typeof which === 'object' && which !== null) mustSayWhich(which)
    return new Selection(this.#session, which, cap)
  }

  /** The canaries that did not complete in time. */
  async #failedOf(ids: readonly string[], timeout: number, signal?: AbortSignal): Promise<string[]> {
    const waiting = { timeout: { milliseconds: timeout }, ...(signal === undefined ? null : { signal }) }
    const endings = await Promise.all(
      ids.map((id) =>
        this.#waiting.forEnd(id, waiting).then(
          ({ status, archivedFrom }) => (archivedFrom ?? status) === 'completed',
          () => false,
        ),
      ),
    )
    return ids.filter((_, i) => !endings[i])
  }
}

const BULK_OPTIONS: ReadonlySet<string> = new Set<keyof BulkOptions>(['dryRun', 'cap', 'signal', 'onProgress'])
const REPLAY_OPTIONS: ReadonlySet<string> = new Set<string & keyof ReplayOptions>([
  ...(BULK_OPTIONS as ReadonlySet<keyof BulkOptions>),
  'rate',
  'canary',
  'canaryTimeout',
  'asNew',
  'fresh',
  'ttl',
  'expiresAt',
])

const PAGE = 1_000

/** Throws if the group does not exist: a typo must not look like a successful replay. */
const mustHaveGroup = <R extends BulkReport>(which: Which, report: R): R => {
  if (typeof which === 'string' || !('group' in which) || which.group === undefined) return report
  if (report.matched > 0 || report.stopped !== null) return report
  throw new HoldfastError('GROUP_NOT_FOUND', `no dead letter belongs to group ${which.group}`, { group: which.group })
}

/** A group while it is being counted. */
interface Tally {
  readonly print: Fingerprint
  readonly types: Set<string>
  count: number
  firstSeenAt: Instant
  lastSeenAt: Instant
  last: TaskRecord
}

const count = (groups: Map<string, Tally>, record: TaskRecord): void => {
  const print = fingerprintOf(record.lastError)
  const at = record.lastError?.at ?? record.completedAt ?? record.updatedAt
  let tally = groups.get(print.fingerprint)
  if (tally === undefined) {
    tally = { print, types: new Set(), count: 0, firstSeenAt: at, lastSeenAt: at, last: record }
    groups.set(print.fingerprint, tally)
  }
  tally.count++
  tally.types.add(record.type)
  tally.firstSeenAt = Math.min(tally.firstSeenAt, at)
  if (at < tally.lastSeenAt) return
  tally.lastSeenAt = at
  tally.last = record
}

const told = ({ print, types, last, ...seen }: Tally): DeadGroup => ({
  ...print,
  ...seen,
  types: [...types].sort(),
  sample: new Task(last),
})

const expiryOf = ({ ttl, expiresAt }: ReplayOptions): Replay['expiresAt'] => {
  if (ttl !== undefined && expiresAt !== undefined) {
    throw new HoldfastError('INVALID_OPTION', 'ttl and expiresAt cannot be combined: give one of them', {
      field: 'ttl',
    })
  }
  if (ttl !== undefined) {
    const length = parseDuration(ttl, 'ttl')
    return (now) => now + length
  }
  const at = expiresAt === undefined ? null : parseInstant(expiresAt, 'expiresAt')
  return () => at
}
