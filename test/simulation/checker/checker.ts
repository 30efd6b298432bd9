/** Follows every task through every write that the store applies, and collects what contradicts an invariant. */
import { isReady } from '../../../src/core/guards.ts'
import type { Instant, TaskRecord } from '../../../src/core/task.ts'
import { isTerminal } from '../../../src/core/task.ts'
import type { Kernel } from '../kernel.ts'
import type { Marks } from '../marks.ts'
import type { Trace } from '../trace.ts'
import type { Invariant, Violation } from './invariants.ts'
import { Limits } from './limits.ts'
import { StepWitness } from './steps.ts'
import { checkTransition } from './transitions.ts'
import type { Witness } from './witness.ts'

/** A simulation of thousands of steps would otherwise report the same mistake a thousand times. */
const MOST_VIOLATIONS = 20

export interface Served {
  readonly queues: readonly string[]
  readonly types: readonly string[]
}

export class Checker {
  readonly violations: Violation[] = []
  /** As last seen in the store. */
  readonly tasks = new Map<string, TaskRecord>()
  /** Every task that was ever there. */
  readonly everSeen = new Map<string, TaskRecord>()
  readonly removed = new Set<string>()
  /** How often each task was sent to the store as a submission. */
  readonly insertsSent = new Map<string, number>()
  /** Submitted again, without a key, by a caller who had no answer. */
  readonly repeated = new Set<string>()
  readonly tokens = new Map<string, string>()
  /** What each worker serves. A worker that is not listed claims by hand, whatever it is given. */
  readonly served = new Map<string, Served>()
  readonly witness: Witness
  readonly steps: StepWitness
  readonly marks: Marks
  /** How much the clocks that stamp a task may differ from the store's. */
  clockBound = 0
  /** How long ago a write may have been decided. */
  lateBound = 0
  readonly #kernel: Kernel
  readonly #trace: Trace
  /** Since when each task could have been moved by a worker. */
  readonly #movableSince = new Map<string, Instant>()
  readonly #keys = new Map<string, string>()
  /** Tasks that an operator asked to delete, whose keys may be used again. */
  readonly deleted = new Set<string>()
  readonly limits: Limits

  constructor(kernel: Kernel, witness: Witness, marks: Marks, trace: Trace, steps = new StepWitness()) {
    this.#kernel = kernel
    this.witness = witness
    this.steps = steps
    this.marks = marks
    this.#trace = trace
    this.limits = new Limits(this, kernel)
  }

  violate(invariant: Invariant, what: string, task?: string): void {
    if (this.violations.length >= MOST_VIOLATIONS) return
    this.#trace.line('checker', `VIOLATION ${invariant} ${what}`)
    this.violations.push({
      invariant,
      what,
      ...(task === undefined ? null : { task }),
      step: this.#kernel.steps,
      at: Math.round(this.#kernel.now),
    })
  }

  /** A submission of this task is on its way to the store. */
  sends(id: string): void {
    this.insertsSent.set(id, (this.insertsSent.get(id) ?? 0) + 1)
  }

  /** The store holds this now: `after` is null when the task is gone. `now` is the store's clock. */
  saw(id: string, after: TaskRecord | null, now: Instant): void {
    const before = this.tasks.get(id) ?? null
    if (after === null) {
      if (before !== null) this.#gone(before)
      return
    }
    if (before === null) this.#appeared(after)
    checkTransition({ checker: this, before, after, now })
    this.tasks.set(id, after)
    this.everSeen.set(id, after)
    if (after.status === 'running' && before?.lease?.token !== after.lease?.token) this.limits.check(after, now)
  }

  #appeared(task: TaskRecord): void {
    const { id, idempotencyKey: key } = task
    // Of schedules, handlers and replays. What a trigger submits may change until its first run.
    if (!this.witness.inputs.has(id) && key?.startsWith('coalesce:') !== true)
      this.witness.mayHave(id, JSON.parse(task.input))
    if (this.removed.has(id) && ((this.insertsSent.get(id) ?? 0) > 1 || (key === null && this.repeated.has(id)))) {
      // Without a key nothing remembers a removed task: see docs/simulation.md.
      this.marks.hit('a late submission of a removed task')
      this.witness.starts.delete(id)
    } else if (this.removed.has(id)) this.violate('I1b', `task ${id} came back after it was removed`, id)
    if (key === null) return
    const other = this.#keys.get(key)
    const isFree = other === undefined || other === id || this.deleted.has(other)
    if (!isFree && !key.startsWith('coalesce:'))
      this.violate(
        key.startsWith('schedule:') ? 'I9' : 'I6',
        `tasks ${other} and ${id} were both made for the key ${key}`,
        id,
      )
    this.#keys.set(key, id)
    if (!key.startsWith('coalesce:')) return
    const waiting = other === undefined ? undefined : this.tasks.get(other)
    // One that was cancelled waits again if an operator wants it to.
    const isBack = waiting?.history.some(({ move }) => move === 'retry' || move === 'replay') ?? false
    if (waiting?.status === 'pending' && waiting.attempts === 0 && !isBack)
      this.violate('I6', `tasks ${other} and ${id} both wait for the coalesce key ${key}`, id)
  }

  #gone(task: TaskRecord): void {
    this.tasks.delete(task.id)
    this.removed.add(task.id)
    if (!isTerminal(task.status)) this.violate('I1', `task ${task.id} was removed while it was ${task.status}`, task.id)
  }

  /** Called now and then while there are no faults: what a worker should have moved long ago. */
  checkRecovery(now: Instant, bound: number): void {
    for (const task of this.tasks.values()) {
      const isLapsed = task.status === 'running' && task.lease !== null && task.lease.expiresAt <= now
      const isWaiting = isReady(task, now)
      const isExpired = task.status === 'pending' && task.expiresAt !== null && task.expiresAt <= now
      if (!isLapsed && !isWaiting && !isExpired) {
        this.#movableSince.delete(task.id)
        continue
      }
      const since = this.#movableSince.get(task.id) ?? now
      this.#movableSince.set(task.id, since)
      if (now - since <= bound) continue
      this.#movableSince.set(task.id, Number.POSITIVE_INFINITY)
      const what = isLapsed ? 'has a lapsed lease' : isExpired ? 'has expired' : 'is due'
      this.violate('I10', `task ${task.id} ${what} for ${Math.round(now - since)} ms without faults`, task.id)
    }
  }
}
