/**
 * Moves a batch of tasks from one store to the other: copies them, archives the originals, each at the revision that was copied, then
 * opens the copies. A copy that is not open cannot be claimed, so it does no harm: if the task has changed meanwhile, the copy is replaced.
 * If it has not, the write that archives it may still arrive, so the copy stays: without it the task would be in neither store.
 */
import { isContactLost } from '../../core/errors.ts'
import { type Change, isTerminal, type TaskRecord } from '../../core/task.ts'
import {
  arrive,
  compareCopies,
  copyOf,
  copyOfDeparted,
  depart,
  hasDeparted,
  isHeld,
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

interface Departing {
  readonly task: TaskRecord
  /** Archives it in the old store. */
  readonly departure: Change
}

interface Copying extends Departing {
  readonly insertion: Insertion
}

interface Copied extends Copying {
  /** As it is stored. If another task of the new store represents this one, the task itself. */
  readonly copy: TaskRecord
}

/** What a move does with a task that it may have left half moved. */
type Fate = 'done' | 'wait' | 'open' | 'copy' | 'remove'

/** `wait`: a write that archives the original may still arrive. `open`: it has. `copy`: it has, and the copy is missing. */
const fateOf = (task: TaskRecord | null, copy: TaskRecord | null): Fate => {
  // The original is gone without having been archived, so it ended and was removed. A copy that has ended too is harmless.
  if (task === null)
    return copy === null || (isTerminal(copy.status) && copy.archivedFrom !== 'pending') ? 'done' : 'remove'
  if (hasDeparted(task)) {
    if (copy !== null) return isHeld(task, copy) ? 'open' : 'done'
    return 'copy'
  }
  if (copy === null) return 'done'
  const comparison = compareCopies(task, copy)
  if (comparison === 'same') return 'wait'
  return comparison === 'stale' ? 'remove' : 'done'
}

export class MoveBatch {
  readonly report: BatchReport = { moved: 0, deduplicated: 0, withoutKey: 0, conflicts: new Set() }
  readonly #from: Session
  readonly #to: Session
  /** Tasks that have an equivalent in the new store. */
  readonly #represented = new Set<string>()
  /** Tasks with a copy whose original may not be archived. */
  readonly #unclear = new Set<string>()

  constructor(from: Session, to: Session) {
    this.#from = from
    this.#to = to
  }

  /** How many have left the old store. */
  get gone(): number {
    return this.report.moved + this.report.deduplicated
  }

  /** Tasks with a copy whose original may not be archived: another run of the move must know of them. */
  get unclear(): ReadonlySet<string> {
    return this.#unclear
  }

  /** Reads the tasks with their history and returns those that can be moved now. */
  async ready(ids: readonly string[]): Promise<readonly TaskRecord[]> {
    const tasks = await withPatience(this.#from, () => this.#from.store.get(ids))
    return tasks.filter((task) => task !== null && readiness(task) === 'go') as readonly TaskRecord[]
  }

  async move(tasks: readonly TaskRecord[]): Promise<void> {
    const { time, name: by } = this.#from
    const actor = { now: time.now(), by, op: newOp() }
    const leaving = tasks.map((task) => ({ task, departure: depart(task, actor, this.#to.store.address) }))
    const copied = await this.#copy(await this.#withCopies(leaving))
    if (copied.length === 0) return
    const stayed = await this.#leave(copied)
    const left = copied.filter(({ task }) => !stayed.has(task.id))
    for (const { task } of left) this.#unclear.delete(task.id)
    await this.#open(left.map(({ copy }) => copy))
    for (const { task } of left) {
      if (this.#represented.has(task.id)) this.report.deduplicated++
      else this.report.moved++
    }
    await this.clear([...stayed])
  }

  /** Finishes what a call of `move` left open, also one of an earlier run, as far as that is possible now. */
  async clear(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return
    const [here, there] = await Promise.all([
      withPatience(this.#from, () => this.#from.store.get(ids)),
      withPatience(this.#to, () => this.#to.store.get(ids)),
    ])
    const found = ids.map((id, i) => ({ id, task: here[i] ?? null, copy: there[i] ?? null }))
    const by = Map.groupBy(found, ({ task, copy }) => fateOf(task, copy))
    for (const { id } of by.get('wait') ?? []) this.#unclear.add(id)
    for (const fate of ['done', 'open', 'copy', 'remove'] as const)
      for (const { id } of by.get(fate) ?? []) this.#unclear.delete(id)
    await this.#takeBack((by.get('remove') ?? []).map(({ copy }) => copy!))
    const made = await this.#copyDeparted((by.get('copy') ?? []).map(({ task }) => task!))
    await this.#open([...made, ...(by.get('open') ?? []).map(({ copy }) => copy!)])
  }

  /** Makes the missing copies of tasks that have left. Returns those that are there now; a task that another one represents has none. */
  async #copyDeparted(tasks: readonly TaskRecord[]): Promise<readonly TaskRecord[]> {
    if (tasks.length === 0) return []
    const insertions = await Promise.all(tasks.map((task) => this.#insertion(task, copyOfDeparted(task))))
    const made: TaskRecord[] = []
    const withoutKey: Insertion[] = []
    for (const [i, outcome] of (await this.#insert(insertions)).entries()) {
      const { task, key } = insertions[i]!
      if (outcome.outcome === 'created') made.push(task)
      else if (outcome.task?.id === task.id) this.#unclear.add(task.id)
      else if (outcome.outcome === 'existing' && !isRepeated({ status: tasks[i]!.archivedFrom! }, key, outcome.key))
        withoutKey.push({ task })
    }
    if (withoutKey.length === 0) return made
    this.report.withoutKey += withoutKey.length
    await this.#insert(withoutKey)
    return [...made, ...withoutKey.map(({ task }) => task)]
  }

  async #withCopies(leaving: readonly Departing[]): Promise<Copying[]> {
    return Promise.all(
      leaving.map(async ({ task, departure }) => {
        const insertion = await this.#insertion(task, copyOf(task, departure))
        return { task, departure, insertion }
      }),
    )
  }

  /** The copy with the key of its task. */
  async #insertion(task: TaskRecord, copy: TaskRecord): Promise<Insertion> {
    if (task.idempotencyKey === null) return { task: copy }
    const { store, time } = this.#from
    const found = await withPatience(this.#from, () => store.find(task.idempotencyKey!))
    const key = keyOf(task, found?.key ?? null, time.now())
    return key === null ? { task: copy } : { task: copy, key }
  }

  /** Returns the tasks whose copy is stored, so that the originals can be archived. */
  async #copy(copying: readonly Copying[], tries = TRIES): Promise<Copied[]> {
    const copied: Copied[] = []
    const again: Copying[] = []
    const inserted = await this.#insert(copying.map(({ insertion }) => insertion))
    for (const [i, one] of copying.entries()) {
      const { task, insertion } = one
      const outcome = inserted[i]!
      if (outcome.outcome === 'created') copied.push({ ...one, copy: insertion.task })
      else if (outcome.task?.id === task.id) {
        const retry = await this.#meet(task, outcome.task)
        if (retry === 'copied') copied.push({ ...one, copy: outcome.task })
        else if (retry === 'again') again.push(one)
      } else if (outcome.outcome === 'existing') {
        // An ended original stays as a record.
        if (isRepeated(task, insertion.key, outcome.key)) {
          this.#represented.add(task.id)
          copied.push({ ...one, copy: task })
        } else {
          this.report.withoutKey++
          again.push({ ...one, insertion: { task: insertion.task } })
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

  /** Archives the originals. Returns the ids of those that were not archived as far as can be seen. */
  async #leave(copied: readonly Copied[]): Promise<ReadonlySet<string>> {
    const { store, events } = this.#from
    const committed = await this.#commit(copied.map(({ departure }) => departure))
    const unclear = copied.filter((_, i) => committed[i] !== 'written')
    for (const [i, { task, departure }] of copied.entries())
      if (committed[i] === 'written') events.moved(task, departure)
    if (unclear.length === 0) return new Set()
    const now = await withPatience(this.#from, () => store.get(unclear.map(({ task }) => task.id)))
    const stayed = unclear.filter((_, i) => {
      const task = now[i] ?? null
      return task === null || !hasDeparted(task)
    })
    return new Set(stayed.map(({ task }) => task.id))
  }

  async #commit(changes: readonly Change[]): Promise<readonly (Committed | 'unclear')[]> {
    try {
      return await this.#from.store.commit(changes)
    } catch (error) {
      if (isContactLost(error)) return changes.map(() => 'unclear' as const)
      throw error
    }
  }

  /** Opens the copies of tasks that waited. What was not written, because it was open already or is missing, is looked at again before the end. */
  async #open(copies: readonly TaskRecord[]): Promise<void> {
    const { store, time, name: by } = this.#to
    const held = copies.filter((copy) => hasDeparted(copy) && copy.archivedFrom === 'pending')
    if (held.length === 0) return
    const actor = { now: time.now(), by, op: newOp() }
    const changes = held.map((copy) => arrive(copy, actor, this.#from.store.address))
    const committed = await withPatience(this.#to, () => store.commit(changes))
    for (const [i, { id }] of held.entries()) if (committed[i] !== 'written') this.#unclear.add(id)
  }

  /** Removes copies at their original revision. A copy that has moved although the new store is paused is reported and left alone. */
  async #takeBack(copies: readonly TaskRecord[]): Promise<void> {
    if (copies.length === 0) return
    const removals = copies.map(({ id, revision }) => ({ id, revision, endKey: true }))
    const removed = await withPatience(this.#to, () => this.#to.store.remove(removals))
    for (const [i, result] of removed.entries()) if (result === 'conflict') this.report.conflicts.add(copies[i]!.id)
  }
}
