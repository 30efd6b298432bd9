/** Imports the lines of an export. It reads the file twice, so that nothing is written before the whole file has been checked. */

import { HoldfastError } from '../../core/errors.ts'
import { keyIsLive } from '../../core/idempotency.ts'
import { isDeleted, type ScheduleRecord } from '../../core/schedules/schedule.ts'
import { PAUSE, QUEUE, SCHEDULE } from '../../core/storage/document-names.ts'
import { type ExportCounts, type ExportLine, readLine, requeueImported } from '../../core/transfer/portable.ts'
import { isRepeated } from '../../core/transfer/transfer.ts'
import type { Insertion } from '../../store/store.ts'
import { withPatience } from '../patience.ts'
import { readSchedule } from '../schedules/slot-runner.ts'
import type { Session } from '../session.ts'
import { mustKeepKeys } from './detached-keys.ts'
import { joinFlow } from './flow.ts'

/** Options of `import`. */
export interface ImportOptions {
  /** Stops between two batches. What is written stays, and importing the same file again continues. */
  readonly signal?: AbortSignal
  /** Task lines imported so far, and in total. */
  readonly onProgress?: (done: number, total: number) => void
}

/** What an import did. */
export interface ImportReport {
  /** The address from which it was exported. */
  readonly source: string
  /** Tasks that were imported. */
  readonly tasks: number
  /** How many of them were running when they were exported. They are pending now. */
  readonly wereRunning: number
  /** Tasks whose id already existed. They were left alone. */
  readonly there: number
  /** Waiting tasks left out because a task with the same key, type and input exists. */
  readonly deduplicated: number
  /** Tasks imported without their key, because it belongs to another task here. */
  readonly withoutKey: number
  /** Idempotency keys that were imported, and outlive their tasks. */
  readonly keys: number
  /** Pauses of queues. */
  readonly pauses: number
  /** Schedules. */
  readonly schedules: number
  /** Why it ended early; null if it did not. */
  readonly stopped: 'aborted' | null
}

/** Opens the file from its beginning; called twice. */
export type OpenLines = () => AsyncIterable<string>

const MOST = 500
const WEIGHT = 4_000_000

export const importLines = async (
  session: Session,
  open: OpenLines,
  options: ImportOptions = {},
): Promise<ImportReport> => {
  const { source, counts } = await check(open)
  return new Import(session, source, counts.tasks, options).run(open)
}

/** Throws INVALID_EXPORT if the file is not an export, is cut short, or has an unreadable line. */
const check = async (open: OpenLines): Promise<{ source: string; counts: ExportCounts }> => {
  const counts = { queues: 0, pauses: 0, tasks: 0, keys: 0, schedules: 0 }
  let source: string | null = null
  let end: ExportCounts | null = null
  let n = 0
  for await (const text of open()) {
    n++
    if (n > 1 && text === '') continue
    if (end !== null) throw unsound(`line ${n}: there is something after the end`)
    const line = readLine(text, n)
    if (n === 1) {
      if (!('holdfast' in line)) throw unsound('line 1: an export begins with {"holdfast":"export",…}')
      source = line.source
    } else if ('end' in line) end = line.end
    else if ('kind' in line) counts[`${line.kind}s`]++
    else throw unsound(`line ${n}: a second beginning`)
  }
  if (source === null) throw unsound('it is empty')
  if (end === null) throw unsound(`it is cut short after line ${n}: the last line, with the counts, is missing`)
  for (const [kind, count] of Object.entries(counts)) {
    const said = end[kind as keyof ExportCounts]
    if (said !== count) throw unsound(`it has ${count} ${kind}, and its last line says ${said}`)
  }
  return { source, counts }
}

const unsound = (why: string): HoldfastError => new HoldfastError('INVALID_EXPORT', why)

class Import {
  readonly #session: Session
  readonly #options: ImportOptions
  readonly #total: number
  readonly #report: { -readonly [Field in keyof ImportReport]: ImportReport[Field] }
  #batch: Insertion[] = []
  #weight = 0
  #done = 0

  constructor(session: Session, source: string, total: number, options: ImportOptions) {
    this.#session = session
    this.#options = options
    this.#total = total
    this.#report = {
      source,
      tasks: 0,
      wereRunning: 0,
      there: 0,
      deduplicated: 0,
      withoutKey: 0,
      keys: 0,
      pauses: 0,
      schedules: 0,
      stopped: null,
    }
  }

  async run(open: OpenLines): Promise<ImportReport> {
    let n = 0
    for await (const text of open()) {
      n++
      const line = text === '' ? null : readLine(text, n)
      if (line === null || !('kind' in line)) continue
      if (line.kind === 'task') await this.#take(line, text.length)
      else {
        await this.#flush()
        await this.#put(line)
      }
      if (this.#options.signal?.aborted) return { ...this.#report, stopped: 'aborted' }
    }
    await this.#flush()
    return this.#report
  }

  async #take({ task, key }: Extract<ExportLine, { kind: 'task' }>, weight: number): Promise<void> {
    const { time, name } = this.#session
    const now = time.now()
    const isKeyed = key !== null && keyIsLive(key, true, now)
    this.#batch.push({ task: requeueImported(task, name, now), ...(isKeyed ? { key } : null) })
    this.#weight += weight
    if (this.#batch.length >= MOST || this.#weight >= WEIGHT) await this.#flush()
  }

  async #flush(): Promise<void> {
    const batch = this.#batch
    if (batch.length === 0) return
    this.#batch = []
    this.#weight = 0
    await this.#insert(batch)
    this.#done += batch.length
    this.#options.onProgress?.(this.#done, this.#total)
  }

  async #insert(batch: readonly Insertion[]): Promise<void> {
    const keyless: Insertion[] = []
    const inserted = await withPatience(this.#session, () => this.#session.store.insert(batch, { now: null }))
    for (const [i, { task, key }] of batch.entries()) {
      const outcome = inserted[i]!
      if (outcome.outcome === 'created')
        this.#count(task.history.at(-1)?.reason, key !== undefined || task.idempotencyKey === null)
      else if (outcome.task?.id === task.id) this.#report.there++
      else if (outcome.outcome === 'existing' && isRepeated(task, key, outcome.key)) this.#report.deduplicated++
      else keyless.push({ task })
    }
    if (keyless.length > 0) await this.#insert(keyless)
  }

  #count(reason: string | undefined, hasKey: boolean): void {
    this.#report.tasks++
    if (reason === 'it was running when it was exported') this.#report.wereRunning++
    if (!hasKey) this.#report.withoutKey++
  }

  async #put(line: Exclude<ExportLine, { kind: 'task' }>): Promise<void> {
    const { store } = this.#session
    const put = (name: string, value: object): Promise<number | null> =>
      withPatience(this.#session, () => store.documents.put(name, JSON.stringify(value), 0))
    switch (line.kind) {
      case 'queue':
        await put(QUEUE + line.queue, {})
        if (line.flow !== undefined) await joinFlow(this.#session, line.queue, line.flow)
        break
      case 'pause': {
        const { queue, ...pause } = line.pause
        if ((await put(PAUSE + queue, pause)) !== null) this.#report.pauses++
        break
      }
      case 'key': {
        const [isPut] = await withPatience(this.#session, () => mustKeepKeys(store).put([line.key], null))
        if (isPut) this.#report.keys++
        break
      }
      case 'schedule':
        if (await this.#putSchedule(line.schedule)) this.#report.schedules++
    }
  }

  /** Replaces a deleted schedule, and no other. */
  async #putSchedule(schedule: ScheduleRecord): Promise<boolean> {
    const { documents } = this.#session.store
    const name = SCHEDULE + schedule.id
    const there = await withPatience(this.#session, () => documents.get(name))
    if (there !== null && !isDeleted(readSchedule(there))) return false
    const value = JSON.stringify(schedule)
    return (await withPatience(this.#session, () => documents.put(name, value, there?.version ?? 0))) !== null
  }
}
