/** Follows tasks in the store to which a move copies them. What it finds is reported with what the old store's checker finds. */
import { type Instant, isTerminal, type TaskRecord } from '../../../src/core/task.ts'
import { hasDeparted } from '../../../src/core/transfer/transfer.ts'
import type { Kernel } from '../kernel.ts'
import type { Marks } from '../marks.ts'
import type { Trace } from '../trace.ts'
import { Checker } from './checker.ts'
import type { Invariant } from './invariants.ts'

/** A store keeps its own. */
const PRIVATE: ReadonlySet<string> = new Set(['mark'])
/** What a departure changes. */
const OF_DEPARTURE: ReadonlySet<string> = new Set([
  ...PRIVATE,
  'status',
  'archivedFrom',
  'tags',
  'parked',
  'updatedAt',
  'revision',
  'history',
])

/** Before it departed. */
const revisionOf = (task: TaskRecord): number => (hasDeparted(task) ? task.revision - 1 : task.revision)

export class CopyChecker extends Checker {
  readonly #origin: Checker
  /** Copies that the move may still replace or remove: their original has not departed, and nobody has claimed them. */
  readonly #copies = new Map<string, TaskRecord>()

  constructor(origin: Checker, kernel: Kernel, marks: Marks, trace: Trace) {
    super(kernel, origin.witness, marks, trace, origin.steps)
    this.#origin = origin
  }

  override violate(invariant: Invariant, what: string, task?: string): void {
    this.#origin.violate(invariant, `in the new store: ${what}`, task)
  }

  override saw(id: string, after: TaskRecord | null, now: Instant): void {
    const before = this.tasks.get(id) ?? null
    const copy = this.#copies.get(id)
    if (before === null && after !== null && this.#isCopy(after)) this.#arrived(after)
    else if (copy !== undefined && after === null) this.#left(copy)
    else {
      if (copy !== undefined && before !== null && after !== null && after.attempts > copy.attempts)
        this.#claimed(before)
      super.saw(id, after, now)
    }
  }

  /** The task as it is in the old store, or as it was there last. */
  #original(id: string): TaskRecord | undefined {
    return this.#origin.tasks.get(id) ?? this.#origin.everSeen.get(id)
  }

  #isCopy({ id, history }: TaskRecord): boolean {
    return history[0]?.op !== undefined && this.#original(id)?.history[0]?.op === history[0].op
  }

  #arrived(copy: TaskRecord): void {
    const { id } = copy
    const original = this.#original(id)!
    const [here, there] = [revisionOf(original), revisionOf(copy)]
    this.marks.hit('a copy arrived')
    if (copy.status === 'pending') this.violate('I2', `task ${id} can be claimed before its original has left`, id)
    if (here === there) {
      const own = hasDeparted(original) || hasDeparted(copy) ? OF_DEPARTURE : PRIVATE
      for (const name of Object.keys(original) as (keyof TaskRecord)[])
        if (!own.has(name) && JSON.stringify(original[name]) !== JSON.stringify(copy[name]))
          this.violate('I8', `task ${id}: its ${name} is not that of the original`, id)
    } else if (here < there)
      this.violate('I8', `task ${id} arrived at revision ${there}, its original is at ${here}`, id)
    else this.marks.hit('a copy was older than its original')
    this.#copies.set(id, copy)
    this.tasks.set(id, copy)
    this.everSeen.set(id, copy)
  }

  /** The move takes back what changed in the old store meanwhile; an operator may remove what has ended. */
  #left({ id }: TaskRecord): void {
    const { status, archivedFrom } = this.tasks.get(id)!
    const original = this.#origin.tasks.get(id)
    this.#copies.delete(id)
    this.tasks.delete(id)
    // One that waits must come again: at the end it is missed.
    if (!isTerminal(status) || archivedFrom === 'pending') this.marks.hit('a copy was taken back')
    else if (original === undefined || hasDeparted(original)) this.removed.add(id)
  }

  /** From now on the task is here. */
  #claimed({ id, revision }: TaskRecord): void {
    const original = this.#origin.tasks.get(id)
    this.#copies.delete(id)
    if (original === undefined) {
      if (!this.#origin.removed.has(id)) this.violate('I1', `task ${id} was claimed, and its original is lost`, id)
    } else if (!hasDeparted(original))
      this.violate('I2', `task ${id} was claimed while its original was ${original.status} in the old store`, id)
    else {
      this.marks.hit('a moved task was claimed')
      // Opened: the departure and the arrival are two moves.
      if (original.revision + 1 > revision)
        this.violate('I8', `a copy of task ${id} was claimed at revision ${revision}, older than its original`, id)
    }
  }
}
