/** One look at a queue: lists its hints from the oldest on, reads what may be worth it, and leases by writing from the mark it read. */
import { isContactLost } from '../../core/errors.ts'
import { claim, isExpiredAt, release } from '../../core/machine.ts'
import { applyChange, type Instant, type TaskRecord } from '../../core/task.ts'
import { byTurn } from '../../core/turn.ts'
import type { Look, Want } from '../store.ts'
import type { Committer } from './commit.ts'
import { MemoryOfLooks } from './memory-of-looks.ts'
import { type Hint, queuePrefix } from './names.ts'
import type { MakeSurveyor, Survey, SurveysHints } from './survey.ts'
import { isLiving, type Living, type Tasks } from './tasks.ts'

/** Reads of one look for leases that others may have let lapse: of types that nobody here wants, or with no room to take any. */
const ROUTINE_READS = 10
/** How long such a read is good for. */
const ROUTINE_EVERY = 30_000
/** A hint that has waited this long for its task to be written waits in vain. */
const HINT_LIFE = 3_600_000
/** How soon to look again at a hint that is ahead of its task. */
const AHEAD_WAIT = 5_000

interface Found {
  readonly leased: TaskRecord[]
  readonly due: TaskRecord[]
  tokens: number
  unclear: unknown
}

export class Looker {
  readonly memory = new MemoryOfLooks()
  readonly #tasks: Tasks
  readonly #committer: () => Committer
  readonly #surveyor: SurveysHints
  /** Hints that a look of this process is trying just now. */
  readonly #inHand = new Set<string>()
  /** Others work on this queue: begin somewhere else than they do. */
  #contention = 0

  constructor(
    tasks: Tasks,
    committer: () => Committer,
    isDiscarded: (key: string) => boolean,
    makeSurveyor: MakeSurveyor,
  ) {
    this.#tasks = tasks
    this.#committer = committer
    this.#surveyor = makeSurveyor(this.memory, (key) => isDiscarded(key) || this.#inHand.has(key))
  }

  /** As it is now, whoever wrote it. */
  noticed = ({ hint, task }: Living, before?: Living): void => {
    if (before !== undefined && before.hint !== null && before.hint !== hint) this.memory.delete(before.hint)
    if (hint === null) return
    if (task.lease === null) this.memory.delete(hint)
    else this.memory.set(hint, { until: task.lease.expiresAt, task: 'leased' })
  }

  async look(want: Want, now: Instant): Promise<Look> {
    const survey = await this.#surveyor.survey(want, now)
    const found: Found = { leased: [], due: [], tokens: 0, unclear: null }
    await this.#lease(survey, want, now, found)
    await this.#report(survey, want, now, found)
    if (found.unclear !== null && found.leased.length === 0) throw found.unclear
    found.leased.sort(byTurn)
    return { leased: found.leased, due: found.due, next: this.#next(want.queue, survey) }
  }

  /** In the order of turn, as many at once as may still be leased. */
  async #lease(survey: Survey, want: Want, now: Instant, found: Found): Promise<void> {
    const hints = this.#rotated(survey.ready, want.limit)
    let at = 0
    let trying = 0
    const lane = async (): Promise<void> => {
      while (at < hints.length && found.leased.length + trying < want.limit) {
        const hint = hints[at++]!
        survey.tried?.(hint)
        // Another look of this process has it, or has just leased it.
        if (this.#inHand.has(hint.key) || this.#isLeased(hint, now)) continue
        trying++
        this.#inHand.add(hint.key)
        try {
          await this.#try(hint, want, now, found)
        } finally {
          this.#inHand.delete(hint.key)
          trying--
        }
      }
    }
    await Promise.all(Array.from({ length: Math.min(want.limit, hints.length) }, lane))
  }

  #isLeased({ key }: Hint, now: Instant): boolean {
    const known = this.memory.get(key)
    return known?.task === 'leased' && known.until > now
  }

  /** With several at work, everybody begins elsewhere among those of the highest priority. */
  #rotated(hints: readonly Hint[], limit: number): readonly Hint[] {
    if (this.#contention < 1 || hints.length <= limit) return hints
    const equals = hints.findIndex(({ priority }) => priority !== hints[0]!.priority)
    const first = equals === -1 ? hints : hints.slice(0, equals)
    const chosen = Math.floor(Math.random() * first.length)
    const { bundle } = first[chosen]!
    // The tasks of a bundle together: whoever comes upon the rest of it reads what is done.
    const start = bundle === null ? chosen : first.findIndex((hint) => hint.bundle === bundle)
    return [...first.slice(start), ...first.slice(0, start), ...hints.slice(first.length)]
  }

  async #try(hint: Hint, want: Want, now: Instant, found: Found): Promise<void> {
    const known = this.#contention < 1 ? this.#tasks.held.get(hint.id) : undefined
    if (known?.hint === hint.key && known.task.status === 'pending') {
      if (await this.#tryAs(known, want, now, found)) return
    }
    const living = await this.#read(hint, now)
    if (living !== null) await this.#tryAs(living, want, now, found)
  }

  /** False: it was written by somebody else meanwhile. */
  async #tryAs(living: Living, want: Want, now: Instant, found: Found): Promise<boolean> {
    const { task } = living
    if (this.#isDue(task, now)) {
      this.#addDue(living, want, found)
      return true
    }
    if (task.status !== 'pending') {
      this.#contention = Math.min(10, this.#contention + 1)
      return true
    }
    if (task.availableAt > now) return true
    const token = `${want.op}.${++found.tokens}`
    const change = claim(task, { token, workerId: want.workerId, leaseTtl: want.leaseTtl, now })
    try {
      const leased = await this.#tasks.write(living, applyChange(task, change))
      if (leased === null) {
        this.#contention = Math.min(10, this.#contention + 1)
        return false
      }
      this.#contention *= 0.9
      this.#tasks.held.set(leased)
      this.noticed(leased)
      found.leased.push({ ...leased.task, history: [] })
    } catch (error) {
      if (!isContactLost(error)) throw error
      found.unclear = error
      void this.#giveBack(task.id, token)
    }
    return true
  }

  /** Whether the lease was written is not known. If it was, nobody knows that he holds it: so it is given back. */
  async #giveBack(id: string, token: string): Promise<void> {
    try {
      const kept = await this.#tasks.read(id)
      if (!isLiving(kept) || kept.task.lease?.token !== token) return
      await this.#committer().commit([release(kept.task, { token }, kept.task.lease.claimedAt)])
    } catch {
      // Then it lapses.
    }
  }

  async #report(survey: Survey, want: Want, now: Instant, found: Found): Promise<void> {
    // Not all of them need be: a lease may have been renewed, or taken by somebody else.
    for (let at = 0; at < survey.overdue.length && found.due.length < want.dueLimit; ) {
      const some = survey.overdue.slice(at, at + want.dueLimit - found.due.length)
      at += some.length
      await this.#readForDue(some, want, now, found)
    }
    if (found.due.length < want.dueLimit)
      await this.#readForDue(survey.unknown.slice(0, ROUTINE_READS), want, now, found)
  }

  async #readForDue(hints: readonly Hint[], want: Want, now: Instant, found: Found): Promise<void> {
    await Promise.all(
      hints.map(async (hint) => {
        const living = await this.#read(hint, now)
        if (living === null) return
        if (this.#isDue(living.task, now)) this.#addDue(living, want, found)
        else if (living.task.status === 'pending')
          this.memory.set(hint.key, { until: now + ROUTINE_EVERY, task: 'pending' })
      }),
    )
  }

  #isDue(task: TaskRecord, now: Instant): boolean {
    if (task.status === 'running') return task.lease !== null && task.lease.expiresAt <= now
    return task.status === 'pending' && isExpiredAt(task, now)
  }

  #addDue(living: Living, { dueLimit }: Want, found: Found): void {
    if (found.due.length >= dueLimit || found.due.some(({ id }) => id === living.task.id)) return
    this.#tasks.held.set(living)
    found.due.push({ ...living.task, history: [] })
  }

  /** The task that the hint is for, if it is its own hint; else the hint is taken away, as soon as that is safe. */
  async #read(hint: Hint, now: Instant): Promise<Living | null> {
    const kept = await this.#tasks.read(hint.id).catch((error: unknown) => {
      if (isContactLost(error)) throw error
      // One that cannot be read must not stop the others; whoever asks for it by its id is told.
      this.memory.set(hint.key, { until: now + HINT_LIFE, task: 'behind' })
      return undefined
    })
    if (kept === undefined) return null
    if (isLiving(kept) && kept.hint === hint.key) {
      this.noticed(kept)
      return kept
    }
    this.memory.delete(hint.key)
    if (kept !== null && this.#tasks.dropHint(hint.key, kept)) return null
    // Somebody is about to write the task, or died before.
    this.memory.set(hint.key, { until: now + AHEAD_WAIT, task: 'behind' })
    if (now - hint.at > HINT_LIFE) await this.#overtake(hint, now)
    return null
  }

  /** Writes the task's key, so that whoever wrote the hint has to begin anew: then it can be taken away. */
  async #overtake(hint: Hint, now: Instant): Promise<void> {
    const kept = await this.#tasks.read(hint.id)
    if (isLiving(kept)) await this.#tasks.touch(kept)
    else if (kept === null) await this.#committer().buryEmpty(hint.id, now)
  }

  #next(queue: string, { next }: Survey): Instant | null {
    let soonest = next ?? Number.POSITIVE_INFINITY
    // Also those that this look has just leased.
    for (const [, until] of this.memory.leased(queuePrefix(queue))) soonest = Math.min(soonest, until)
    return soonest === Number.POSITIVE_INFINITY ? null : soonest
  }
}
