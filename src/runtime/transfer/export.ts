/** Exports a store as lines of JSON. It reads page by page, so memory does not grow with the size of the store. */

import { readPause } from '../../core/flow/pause.ts'
import { readFlow } from '../../core/flow/queue-flow.ts'
import { isDeleted } from '../../core/schedules/schedule.ts'
import { FLOW, PAUSE, QUEUE, SCHEDULE } from '../../core/storage/document-names.ts'
import { STATUSES, type TaskRecord } from '../../core/task.ts'
import {
  EXPORT_VERSION,
  type ExportCounts,
  type ExportHeader,
  type ExportLine,
  printLine,
} from '../../core/transfer/portable.ts'
import { withPatience } from '../patience.ts'
import { readSchedule } from '../schedules/slot-runner.ts'
import type { Session } from '../session.ts'
import { type TaskQuery, toQuery } from '../tasks/inspect.ts'
import { pagesOf } from '../tasks/pages.ts'

const KEYS_AT_ONCE = 500

/**
 * Exports tasks oldest first, with history and key, as they are when their page is read. With a `query` it exports only tasks.
 * Archived tasks are included unless the query names statuses.
 */
export async function* exportLines(session: Session, query: TaskQuery = {}): AsyncGenerator<string, void, undefined> {
  const counts = { queues: 0, pauses: 0, tasks: 0, keys: 0, schedules: 0 }
  const filtered = Object.values(query).some((value) => value !== undefined)
  const header: ExportHeader = {
    holdfast: 'export',
    version: EXPORT_VERSION,
    source: session.store.address,
    at: new Date(session.time.now()).toISOString(),
    filtered,
  }
  yield JSON.stringify(header)
  const parts = filtered
    ? [tasksOf(session, query)]
    : [queuesOf(session), pausesOf(session), tasksOf(session, query), detachedKeysOf(session), schedulesOf(session)]
  for (const part of parts) {
    for await (const line of part) {
      counts[`${line.kind}s`]++
      yield printLine(line)
    }
  }
  yield JSON.stringify({ end: counts satisfies ExportCounts })
}

type Part = AsyncGenerator<ExportLine, void, undefined>

async function* queuesOf(session: Session): Part {
  const { documents } = session.store
  const flows = await withPatience(session, () => documents.list(FLOW))
  const flowOf = new Map(flows.map(({ name, value }) => [name.slice(FLOW.length), readFlow(value)]))
  const known = (await withPatience(session, () => documents.list(QUEUE))).map(({ name }) => name.slice(QUEUE.length))
  // A group can be paused before the first task of its queue.
  for (const queue of new Set([...known, ...flowOf.keys()])) {
    const flow = flowOf.get(queue)
    yield { kind: 'queue', queue, ...(flow === undefined ? null : { flow }) }
  }
}

/** Exported before the tasks, so that a paused queue does not run while the rest is being imported. */
async function* pausesOf(session: Session): Part {
  for (const document of await withPatience(session, () => session.store.documents.list(PAUSE))) {
    const { move, ...pause } = readPause(document.value)
    if (move === undefined || move.keep)
      yield { kind: 'pause', pause: { queue: document.name.slice(PAUSE.length), ...pause } }
  }
}

async function* tasksOf(session: Session, query: TaskQuery): Part {
  for await (const page of pagesOf(session, toQuery({ status: STATUSES, ...query }))) {
    const tasks = await withPatience(session, () => session.store.get(page.map(({ id }) => id)))
    const keys = await Promise.all(tasks.map((task) => keyOf(session, task)))
    for (const [i, task] of tasks.entries()) if (task !== null) yield { kind: 'task', task, key: keys[i]! }
  }
}

const keyOf = async (session: Session, task: TaskRecord | null) => {
  if (task === null || task.idempotencyKey === null) return null
  const found = await withPatience(session, () => session.store.find(task.idempotencyKey!))
  return found?.key.taskId === task.id ? found.key : null
}

async function* detachedKeysOf(session: Session): Part {
  const { detachedKeys } = session.store
  let after: string | undefined
  while (detachedKeys) {
    const page = { limit: KEYS_AT_ONCE, ...(after === undefined ? null : { after }) }
    const keys = await withPatience(session, () => detachedKeys.list(page))
    if (keys.length === 0) return
    after = keys.at(-1)!.key
    for (const key of keys) yield { kind: 'key', key }
  }
}

/** Leaves out schedules that were deleted or moved to another store. Exported last, because they fire once they are imported. */
async function* schedulesOf(session: Session): Part {
  for (const document of await withPatience(session, () => session.store.documents.list(SCHEDULE))) {
    const schedule = readSchedule(document)
    if (!isDeleted(schedule) && schedule.moved === undefined) yield { kind: 'schedule', schedule }
  }
}
