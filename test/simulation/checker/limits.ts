/** Limits of queues: how many tasks run at once, and how many begin in a window of time. Counted anew at every claim. */
import { type LimitOptions, ratesOf } from '../../../src/core/flow/limits.ts'
import type { Rate } from '../../../src/core/flow/rate.ts'
import type { Instant, TaskRecord } from '../../../src/core/task.ts'
import type { Kernel } from '../kernel.ts'
import type { Checker } from './checker.ts'

interface Bound {
  readonly queue: string
  readonly limits: LimitOptions
  /** Virtual time, from which every process has seen it. */
  readonly since: number
  /** Claims since then. */
  readonly claims: { readonly at: Instant; readonly group: string | null }[]
}

export class Limits {
  readonly #checker: Checker
  readonly #kernel: Kernel
  #bounds: readonly Bound[] = []
  /** S3 and NATS: a task has no place if it was claimed before its process saw a limit. */
  countsEarlierClaims = true
  /** Virtual time of the last claim of each task. */
  readonly #claimedAt = new Map<string, number>()
  /** Where a process asks for permits and its claim arrives later, or the store's clock steps, claims are not evenly spaced. */
  ratesAreExact = false

  constructor(checker: Checker, kernel: Kernel) {
    this.#checker = checker
    this.#kernel = kernel
  }

  bind(queue: string, limits: LimitOptions, since: number): void {
    this.#bounds = [...this.#bounds, { queue, limits, since, claims: [] }]
  }

  /** Somebody changes them, and may have done so even if the call fails. */
  forget(queue: string): void {
    this.#bounds = this.#bounds.filter((bound) => bound.queue !== queue)
  }

  check(claimed: TaskRecord, now: Instant): void {
    this.#claimedAt.set(claimed.id, this.#kernel.now)
    for (const bound of this.#bounds) {
      if (bound.queue !== claimed.queue || this.#kernel.now < bound.since) continue
      this.#checkPlaces(bound, claimed)
      if (!this.ratesAreExact) continue
      bound.claims.push({ at: now, group: claimed.group })
      this.#checkRates(bound, claimed, now)
    }
  }

  #checkPlaces({ queue, limits: { concurrency, perGroup }, since }: Bound, { id, group }: TaskRecord): void {
    if (concurrency === undefined && perGroup === undefined) return
    let [running, ofGroup] = [0, 0]
    for (const task of this.#checker.tasks.values()) {
      if (task.status !== 'running' || task.queue !== queue) continue
      if (!this.countsEarlierClaims && this.#claimedAt.get(task.id)! < since) continue
      running++
      if (group !== null && task.group === group) ofGroup++
    }
    if (concurrency !== undefined && running > concurrency)
      this.#checker.violate('I2', `${running} tasks of queue ${queue} run, and its limit is ${concurrency}`, id)
    if (perGroup !== undefined && ofGroup > perGroup)
      this.#checker.violate('I2', `${ofGroup} tasks of group ${group} run, and its limit is ${perGroup}`, id)
    if (running === concurrency || ofGroup === perGroup) this.#checker.marks.hit('a limit was full')
  }

  #checkRates({ queue, limits, claims }: Bound, { id, group }: TaskRecord, now: Instant): void {
    const rates = ratesOf(limits)
    const counted = (rate: Rate | null, whose: string, of: (claim: Bound['claims'][number]) => boolean): void => {
      if (rate === null) return
      const most = rate.count + rates.burst - 1
      const begun = claims.filter((claim) => claim.at > now - rate.per && of(claim)).length
      if (begun === most) this.#checker.marks.hit('a rate was used up')
      if (begun > most)
        this.#checker.violate('I2', `${begun} tasks of ${whose} began in ${rate.per} ms; its rate allows ${most}`, id)
    }
    counted(rates.queue, `queue ${queue}`, () => true)
    if (group !== null) counted(rates.group, `group ${group}`, (claim) => claim.group === group)
  }
}
