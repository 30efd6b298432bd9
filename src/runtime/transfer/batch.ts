/**
 * Moves a batch of tasks from one store to the other: copies them, then archives the originals, each at the revision that was
 * copied. If a task has changed meanwhile, it stays, its copy is removed, and the next pass tries again.
 */
import { isContactLost } from '../../core/errors.ts'
import { isTerminal, type TaskRecord } from '../../core/task.ts'
import {
  compareCopies,
  copyOf,
  depart,
  hasDeparted,
  isRepeated,
  keyOf,
  readiness,
} from '../../core/transfer/transfer.ts'
import type { Committed, Inserted, Insertion } from '../../store/store.ts'
import { withPatience } from '../patience.ts'
import { newOp, type Session } from '../session.ts'

export interface BatchReport {
  moved: number
  /** Not copied: a task in the new store has the same key, type and input. */
  deduplicated: number
  /** Copied without its key, which belongs to another task in the new store. */
  withoutKey: number
  /** Left alone: the new store has another task with this id, or the copy ran there before the original was archived. */
  readonly conflicts: Set<string>
}

/** A copy may need a retry without its key and one after removing an older copy. More means that another process writes there too. */
const TRIES = 4

export class MoveBatch {
  readonly report: BatchReport = { moved: 0, deduplicated: 0, withoutKey: 0, conflicts: new Set() }
  readonly #from: Session
  readonly #to: Session
  /** Tasks that have an equivalent in the new store. */
  readonly #represented = new Set<string>()

  constructor(from: Session, to: Session) {
    this.#from = from
    this.#to = to
  }

  /** How many have left the old store. */
  get gone(): number {
    return this.report.moved + this.report.deduplicated
  }

  /** Reads the tasks with their history and returns those that can be moved now. */
  async ready(ids: readonly string[]): Promise<readonly TaskRecord[]> {
    const tasks = await withPatience(this.#from, () => this.#from.store.get(ids))
    return tasks.filter((task) => task !== null && readiness(task) === 'go') as readonly TaskRecord[]
  }

  async move(tasks: readonly TaskRecord[]): Promise<void> {
    const copied = await this.#copy(await this.#insertions(tasks))
    if (copied.length === 0) return
    const stayed = await this.#leave(copied)
    for (const { id } of copied) {
      if (stayed.some((task) => task.id === id)) continue
      if (this.#represented.has(id)) this.report.deduplicated++
      else this.report.moved++
    }
    await this.#takeBack(stayed)
  }

  /** Removes copies that an earlier run left behind: their originals were not archived and may have changed since. */
  async clear(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return
    const [here, there] = await Promise.all([
      withPatience(this.#from, () => this.#from.store.get(ids)),
      withPatience(this.#to, () => this.#to.store.get(ids)),
    ])
    const left = there.filter((copy, i): copy is TaskRecord => {
      const task = here[i] ?? null
      if (copy === null || hasDeparted(copy)) return false
      // The original is gone without having been archived, so it ended and was removed. A copy that has ended too is harmless.
      if (task === null) return !isTerminal(copy.status)
      return !hasDeparted(task) && ['same', 'stale'].includes(compareCopies(task, copy))
    })
    await this.#takeBack(left)
  }

  async #insertions(tasks: readonly TaskRecord[]): Promise<Insertion[]> {
    const { store, time } = this.#from
    return Promise.all(
      tasks.map(async (task) => {
        if (task.idempotencyKey === null) return { task: copyOf(task) }
        const found = await withPatience(this.#from, () => store.find(task.idempotencyKey!))
        const key = keyOf(task, found?.key ?? null, time.now())
        return key === null ? { task: copyOf(task) } : { task: copyOf(task), key }
      }),
    )
  }

  /** Returns the tasks whose copy is stored, so that the originals can be archived. */
  async #copy(insertions: readonly Insertion[], tries = TRIES): Promise<TaskRecord[]> {
    const copied: TaskRecord[] = []
    const again: Insertion[] = []
    const inserted = await this.#insert(insertions)
    for (const [i, insertion] of insertions.entries()) {
      const { task } = insertion
      const outcome = inserted[i]!
      if (outcome.outcome === 'created') copied.push(task)
      else if (outcome.task?.id === task.id) {
        const retry = await this.#meet(task, outcome.task)
        if (retry === 'copied') copied.push(task)
        else if (retry === 'again') again.push(insertion)
      } else if (outcome.outcome === 'existing') {
        // An ended original stays as a record.
        if (isRepeated(task, insertion.key, outcome.key)) {
          this.#represented.add(task.id)
          copied.push(task)
        } else {
          this.report.withoutKey++
          again.push({ task })
        }
      }
    }
    if (tries === 0) for (const { task } of again) this.report.conflicts.add(task.id)
    else if (again.length > 0) copied.push(...(await this.#copy(again, tries - 1)))
    return copied
  }

  #insert(insertions: readonly Insertion[]): Promise<readonly Inserted[]> {
    return withPatience(this.#to, () => this.#to.store.insert(insertions, { now: null }))
  }

  /** The id exists in the new store: as this copy, as an older copy that may be replaced, or as another task. */
  async #meet(task: TaskRecord, there: TaskRecord): Promise<'copied' | 'again' | 'conflict'> {
    const comparison = compareCopies(task, there)
    if (comparison === 'same' || comparison === 'ahead') return 'copied'
    if (comparison === 'stale') {
      const removal = { id: there.id, revision: there.revision, endKey: true }
      const [removed] = await withPatience(this.#to, () => this.#to.store.remove([removal]))
      if (removed !== 'conflict') return 'again'
    }
    this.report.conflicts.add(task.id)
    return 'conflict'
  }

  /** Archives the originals. Returns those that another process moved or removed first. */
  async #leave(tasks: readonly TaskRecord[]): Promise<readonly TaskRecord[]> {
    const op = newOp()
    const { store, time, name: by, events } = this.#from
    const actor = { now: time.now(), by, op }
    const changes = tasks.map((task) => depart(task, actor, this.#to.store.address))
    const committed = await this.#commit(changes)
    const unclear = tasks.filter((_, i) => committed[i] !== 'written')
    for (const [i, task] of tasks.entries()) if (committed[i] === 'written') events.moved(task, changes[i]!)
    if (unclear.length === 0) return []
    const now = await withPatience(this.#from, () => store.get(unclear.map(({ id }) => id)))
    return unclear.filter((_, i) => {
      const task = now[i] ?? null
      return task === null || !hasDeparted(task)
    })
  }

  async #commit(changes: readonly ReturnType<typeof depart>[]): Promise<readonly (Committed | 'unclear')[]> {
    try {
      return await this.#from.store.commit(changes)
    } catch (error) {
      if (isContactLost(error)) return changes.map(() => 'unclear' as const)
      throw error
    }
  }

  /** Removes copies at their original revision. A copy that has moved although the new store is paused is reported and left alone. */
  async #takeBack(copies: readonly TaskRecord[]): Promise<void> {
    if (copies.length === 0) return
    const removals = copies.map(({ id, revision }) => ({ id, revision, endKey: true }))
    const removed = await withPatience(this.#to, () => this.#to.store.remove(removals))
    for (const [i, result] of removed.entries()) if (result === 'conflict') this.report.conflicts.add(copies[i]!.id)
  }
}
