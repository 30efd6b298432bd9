/** Runs the demo: submits tasks, starts workers, kills one of them, and waits until every task has ended. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Client, Task } from '../../index.ts'
import { Crew, type Member } from './crew.ts'
import { KIND_NAMES, KINDS, type KindName } from './kinds.ts'
import { hasEnded, type Line, type Moment, newsOf, newsTime } from './scene.ts'

/** Where the demo is shown: a terminal or a log. */
export interface Audience {
  see(moment: Moment): void
  /** `isMain`: a main event, also shown in a log. */
  hear(line: Line, isMain: boolean): void
}

export interface Ending {
  readonly submitted: ReadonlyMap<string, KindName>
  readonly tasks: readonly Task[]
  readonly killed: string | null
  readonly killedAt: number | null
  readonly elapsed: number
  /** The workers' standard error. */
  readonly complaints: string
}

const WORKERS = 3
const FRAME = 100
const KILL_AFTER = 2_500
/** Far beyond the usual ten seconds. After it, the sums show what is missing. */
const LONGEST = 90_000

/** `url`: the client's store, for the workers. */
export const show = async (
  client: Client,
  url: string,
  queue: string,
  audience: Audience,
  signal: AbortSignal,
): Promise<Ending> => {
  const submitted = await submitAll(client, queue)
  const startedAt = await client.now()
  const crew = new Crew(WORKERS, url, queue)
  const news: Line[] = []
  const seen = new Map<string, number>()
  let tasks: readonly Task[] = []
  let killed: Member | null = null
  let killedAt: number | null = null
  let elapsed = 0
  const tell = (line: Line, isMain: boolean): void => {
    news.push(line)
    audience.hear(line, isMain)
  }
  try {
    while (!signal.aborted) {
      const now = await client.now()
      tasks = await allOf(client, queue, tasks)
      elapsed = now - startedAt
      for (const task of tasks) tellNews(task, seen, startedAt, tell)
      audience.see({ elapsed, tasks, members: crew.members, killedAt, news })
      if (tasks.every(hasEnded) || elapsed > LONGEST || crew.isGone) break
      const victim: Member | null = killed === null && elapsed >= KILL_AFTER ? busy(crew.members, tasks) : null
      if (victim !== null) {
        await crew.kill(victim)
        killed = victim
        killedAt = elapsed
        tell(
          [newsTime(elapsed), [`${victim.id} was killed with SIGKILL in the middle of its work`, ['red', 'bold']]],
          true,
        )
      }
      await pause(FRAME)
    }
  } finally {
    await crew.sendHome()
  }
  tasks = await allOf(client, queue, tasks)
  audience.see({ elapsed, tasks, members: crew.members, killedAt, news })
  return { submitted, tasks, killed: killed?.id ?? null, killedAt, elapsed, complaints: crew.complaints }
}

/** A worker that holds several tasks, so that the kill has an effect. */
const busy = (members: readonly Member[], tasks: readonly Task[]): Member | null =>
  members.find(({ id }) => tasks.filter(({ lease }) => lease?.workerId === id).length > 1) ?? null

/** The ids that submit returned: this list, not the store, says which tasks must exist at the end. */
const submitAll = async (client: Client, queue: string): Promise<Map<string, KindName>> => {
  const submitted = new Map<string, KindName>()
  for (const kind of KIND_NAMES) {
    const { count, input, options } = KINDS[kind]
    const items = Array.from({ length: count }, (_, i) => ({ type: kind, input: input(i + 1), ...options }))
    for (const result of await client.submitMany(items, { queue })) {
      if (!result.ok) throw result.error
      submitted.set(result.task.id, kind)
    }
  }
  return submitted
}

/** All tasks with their histories. A list has none, so tasks that changed since the last read are read one by one. */
const allOf = async (client: Client, queue: string, before: readonly Task[]): Promise<Task[]> => {
  const known = new Map(before.map((task) => [task.id, task]))
  const tasks: Task[] = []
  let cursor: string | null = null
  do {
    const page = await client.list({ queue, order: 'oldest', limit: 1_000, ...(cursor === null ? null : { cursor }) })
    tasks.push(...page.tasks)
    cursor = page.cursor
  } while (cursor !== null)
  return Promise.all(
    tasks.map((task) => (known.get(task.id)?.revision === task.revision ? known.get(task.id)! : client.get(task.id))),
  )
}

const tellNews = (
  task: Task,
  seen: Map<string, number>,
  startedAt: number,
  tell: (line: Line, isMain: boolean) => void,
): void => {
  const last = seen.get(task.id) ?? 0
  for (const entry of task.history) {
    if (entry.n <= last) continue
    const line = newsOf(task, entry, startedAt)
    if (line !== null) tell(line, entry.move === 'lose-lease')
  }
  seen.set(task.id, task.revision)
}
