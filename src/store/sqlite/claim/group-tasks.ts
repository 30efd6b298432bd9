/** The waiting tasks of groups, along the index that has them by group. */
import type { DatabaseSync } from 'node:sqlite'
import type { Instant } from '../../../core/task.ts'
import { prepared } from '../file/connection.ts'
import { byBytes, type Candidate, inOrder } from './lines.ts'

const IN_LEVEL = `from holdfast_task indexed by holdfast_task_turns where task_group is not null and status = 'pending' and queue = ? and type = ? and priority = ?`
const HEAD = 'select task_group, key, available_at, id, expires_at'
const NEXT_GROUP = `${HEAD} ${IN_LEVEL} and task_group > ? order by task_group, available_at, id limit 1`
const THIS_GROUP = `${HEAD} ${IN_LEVEL} and task_group = ? order by available_at, id limit 1`
const TASKS = `select key, available_at, id from (select key, available_at, id, expires_at ${IN_LEVEL} and task_group = ? and available_at <= ? order by available_at, id limit ?) where expires_at is null or expires_at > ? limit ?`
const RUNNING = `select count(*) from holdfast_task indexed by holdfast_task_places where task_group is not null and status = 'running' and queue = ? and task_group = ?`

/** Expired tasks that are passed in one group. What is behind more of them comes when they have been swept. */
const MOST_EXPIRED = 100

type Head = [group: string, key: number, availableAt: Instant, id: string, expiresAt: Instant | null]

export const runningOf = (db: DatabaseSync, queue: string, group: string): number =>
  (prepared(db, RUNNING).get(queue, group) as unknown as [number])[0]

/** The groups that wait with tasks of one type at one priority, one after the other. Stands at the first task of a group, due or not. */
export class GroupCursor {
  readonly #db: DatabaseSync
  readonly #level: readonly [queue: string, type: string, priority: number]
  readonly #only: readonly string[] | null
  #head: Head | undefined

  /** `only`: these groups, in order. null: all. */
  constructor(
    db: DatabaseSync,
    level: readonly [queue: string, type: string, priority: number],
    only: readonly string[] | null,
  ) {
    this.#db = db
    this.#level = level
    this.#only = only
  }

  /** undefined: there are no more. */
  get group(): string | undefined {
    return this.#head?.[0]
  }

  /** To the first group behind this one. */
  seek(group: string): void {
    if (this.#only === null) this.#head = this.#read(NEXT_GROUP, group)
    else {
      this.#head = undefined
      for (const one of this.#only)
        if (this.#head === undefined && byBytes(one, group) > 0) this.#head = this.#read(THIS_GROUP, one)
    }
  }

  #read(sql: string, group: string): Head | undefined {
    return prepared(this.#db, sql).get(...this.#level, group) as unknown as Head | undefined
  }

  /** Of the group at which it stands: whether its first task is due. */
  isDue(now: Instant): boolean {
    return this.#head![2] <= now
  }

  /** Of that group: reads the first tasks that may be claimed. The very first is known already. */
  reader(now: Instant): ReadTasks {
    const [group, key, availableAt, id, expiresAt] = this.#head!
    const first: Candidate[] = expiresAt === null || expiresAt > now ? [[key, availableAt, id]] : []
    return (count) =>
      count <= first.length
        ? first
        : (prepared(this.#db, TASKS).all(
            ...this.#level,
            group,
            now,
            count + MOST_EXPIRED,
            now,
            count,
          ) as unknown as Candidate[])
  }
}

/** Reads the first `count` tasks of a line, or all of them if there are fewer. */
export type ReadTasks = (count: number) => readonly Candidate[]

/** Tasks of several lines as one, in claim order, read as far as they are asked for. */
export class Merged {
  readonly #lines: readonly ReadTasks[]
  #tasks: readonly Candidate[] = []
  #asked = 0

  constructor(lines: readonly ReadTasks[]) {
    this.#lines = lines
  }

  at(index: number): Candidate | undefined {
    while (index >= this.#tasks.length && this.#tasks.length === this.#asked) this.#read(2 * this.#asked + 1)
    return this.#tasks[index]
  }

  #read(count: number): void {
    const read = this.#lines.map((line) => line(count))
    this.#tasks = read.length === 1 ? read[0]! : read.flat().sort(inOrder).slice(0, count)
    this.#asked = count
  }
}

/** The first of the groups at which they stand. */
export const firstOf = (cursors: readonly GroupCursor[]): string | null => {
  let first: string | null = null
  for (const { group } of cursors)
    if (group !== undefined && (first === null || byBytes(group, first) < 0)) first = group
  return first
}
