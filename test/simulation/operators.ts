/** People and scripts that cancel, retry, replay, amend, pause, limit, prune and edit schedules while everything runs. */
import type { LimitOptions } from '../../src/core/flow/limits.ts'
import type { Client } from '../../src/runtime/client.ts'
import type { Random } from '../../src/testing/random.ts'
import type { Caller } from './callers.ts'
import type { Checker } from './checker/checker.ts'
import type { Sent } from './checker/steps.ts'
import { QUEUES } from './handlers.ts'
import type { Simulation } from './simulation.ts'

const LIMIT_SEEN_WITHIN = 5_000
/** Of all deeds while there are limits: a change of them. */
const LIMITS_CHANGE = 0.04
const EVERY = 2_000
/** Virtual milliseconds. A call of a process that dies has no end. */
const LONGEST_LIMITING = 120_000

type Deed = (client: Client, id: string) => Promise<unknown>

export class Operators {
  readonly #simulation: Simulation
  readonly #random: Random
  #hasStrictSchedule = false
  readonly #limitings: { readonly queue: string; readonly begun: number; ended: number }[] = []

  constructor(simulation: Simulation) {
    this.#simulation = simulation
    this.#random = simulation.kernel.random('operators')
  }

  /** Before any worker lives, so that every one of them has seen it. */
  async prepare(): Promise<void> {
    if (!this.#simulation.settings.hasLimits) return
    const caller = await this.#simulation.connected('operator')
    await this.#limit(caller, 0)
    caller.host.kill()
  }

  start(): void {
    void this.#operate()
  }

  async #operate(): Promise<void> {
    const { kernel, settings } = this.#simulation
    let caller = await this.#simulation.connected('operator')
    for (let i = 0; i < settings.schedules; i++) await this.#schedule(caller, i)
    if (settings.hasRetention) await this.#retain(caller)
    const rate = settings.faults.operators
    while (rate > 0 && !this.#simulation.isHealed) {
      await kernel.sleep((-Math.log(1 - this.#random.next()) / rate) * 1_000)
      if (this.#simulation.isHealed) return
      caller = await this.#simulation.living(caller, 'operator')
      if (settings.hasLimits && this.#random.chance(LIMITS_CHANGE)) void this.#limit(caller)
      else void this.#interfere(caller)
    }
  }

  async #interfere(caller: Caller): Promise<void> {
    const { checker, calls, marks } = this.#simulation
    const id = this.#random.pick([...checker.tasks.keys()])
    if (id === undefined) return
    const [name, deed] = this.#random.pick(this.#deeds)!
    const outcome = await calls.run(caller, `${name} ${id}`, () => deed(caller.client, id))
    if (outcome.kind === 'ok') marks.hit(name)
  }

  readonly #deeds: readonly [name: string, deed: Deed][] = [
    ['cancel', (client, id) => client.cancel(id)],
    ['cancel', (client, id) => client.cancel(id)],
    ['retry', (client, id) => client.retry(id)],
    ['retry', (client, id) => client.retry(id)],
    ['amend', (client, id) => client.amend(id, this.#amendment(id))],
    ['run now', (client, id) => client.runNow(id)],
    ['mark expired', (client, id) => client.markExpired(id)],
    ['archive', (client, id) => client.archive(id)],
    ['unarchive', (client, id) => client.unarchive(id)],
    [
      'delete',
      (client, id) => {
        this.#simulation.checker.deleted.add(id)
        return client.delete(id)
      },
    ],
    ['prune', (client) => client.prune({ olderThan: '5s', limit: 3 })],
    ['replay', (client) => client.deadLetters.replay({}, { cap: 3, asNew: this.#random.chance(0.3) })],
    ['replay fresh', (client) => client.deadLetters.replay({}, { cap: 3, fresh: true })],
    ['pause', (client) => client.queue(this.#queue()).pause(this.#random.chance(0.3) ? { group: 'acme' } : {})],
    ['resume', (client) => client.queue(this.#queue()).resume(this.#random.chance(0.3) ? { group: 'acme' } : {})],
    ['claim by hand', (client, id) => this.#byHand(client, id)],
    ['cancel many', (client) => client.cancelMany({ type: 'moody' }, { cap: 2 } as never)],
    ['signal', (client, id) => this.#signal(client, this.#stepped() ?? id)],
    ['signal', (client, id) => this.#signal(client, this.#stepped() ?? id)],
    ['list', (client) => client.list({ limit: 10 })],
    ['count', (client) => client.count({ status: 'pending' })],
    ['why', (client, id) => client.why(id)],
    ['stats', (client) => client.stats()],
  ]

  #stepped(): string | undefined {
    const { checker } = this.#simulation
    return this.#random.pick([...checker.tasks.values()].filter(({ type }) => type === 'stepped'))?.id
  }

  /** Twice with the same id now and then: it is kept once. */
  async #signal(client: Client, task: string, checker = this.#simulation.checker): Promise<void> {
    const again = this.#random.chance(0.3) ? checker.steps.sent.find((sent) => sent.task === task) : undefined
    const n = checker.steps.sent.length
    const generation = checker.tasks.get(task)?.generation ?? 0
    const value = { word: n }
    const sent: Sent = again ?? { task, id: `signal ${n}`, value: JSON.stringify(value), generation, outcome: 'info' }
    if (again === undefined) checker.steps.sent.push(sent)
    await client.signal(task, 'word', JSON.parse(sent.value), { signalId: sent.id })
    sent.outcome = 'ok'
  }

  /** Whoever waits for a signal without end gets one, so that everything can drain. */
  async answer(caller: Caller, checker: Checker, isOver: () => boolean): Promise<void> {
    const { calls, kernel } = this.#simulation
    while (!isOver()) {
      for (const { id, parked } of checker.tasks.values())
        if (parked?.kind === 'signal' && parked.until === null)
          await calls.run(caller, `signal ${id}`, () => this.#signal(caller.client, id, checker))
      await kernel.sleep(500)
    }
  }

  #queue(): string {
    return this.#random.pick(QUEUES)
  }

  #amendment(id: string): object {
    const random = this.#random
    if (random.chance(0.4)) {
      const input = { amended: random.below(100) }
      const { witness } = this.#simulation
      if (witness.inputs.has(id)) witness.mayHave(id, input)
      return { input }
    }
    return random.pick([
      { priority: 9 },
      { delay: '3s' },
      { ttl: '20s' },
      { expiresAt: null },
      { group: 'acme' },
      { tags: { parent: 'amended' } },
    ])!
  }

  /** Claims, works for a while without a heartbeat, and ends the task with the lease that it was given. */
  async #byHand(client: Client, id: string): Promise<void> {
    const { witness, kernel } = this.#simulation
    const workerId = `hand-${this.#random.below(3)}`
    const lease = await client.claim(id, { workerId, leaseTtl: '3s' })
    const start = witness.startByHand({
      id,
      fence: lease.fence,
      worker: workerId,
      token: lease.token,
      input: JSON.stringify(lease.task.input),
      at: kernel.now,
    })
    await kernel.sleep(this.#random.next() * 5_000)
    const dice = this.#random.next()
    if (dice < 0.3) await lease.fail(new Error('by hand'))
    else if (dice < 0.5) await lease.release()
    else {
      start.output = JSON.stringify('by hand')
      await lease.complete('by hand')
    }
  }

  async #retain({ client, host }: Caller): Promise<void> {
    await this.#simulation.calls.run({ host }, 'set retention', () => client.retention.set({ completed: '10s' }))
  }

  async #limit(caller: Caller, seenAfter = this.#seenAfter()): Promise<void> {
    const { calls, kernel, checker } = this.#simulation
    const queue = this.#random.chance(0.7) ? 'mail' : 'default'
    const limits: LimitOptions = this.#random.pick([
      { concurrency: 2 },
      { perGroup: 1 },
      { concurrency: 3, perGroup: 1 },
      { concurrency: 3, fair: true },
      { rate: '5/1s', burst: 2 },
      { rate: '3/2s', concurrency: 4 },
      { ratePerGroup: '2/1s' },
    ])!
    checker.limits.forget(queue)
    const mine = { queue, begun: kernel.now, ended: kernel.now + LONGEST_LIMITING }
    this.#limitings.push(mine)
    const outcome = await calls.run(caller, `limit ${queue} to ${JSON.stringify(limits)}`, () =>
      caller.client.queue(queue).limit(limits),
    )
    mine.ended = kernel.now
    // Of two calls beside each other, the one that ended first may have been written last.
    const isAlone = !this.#limitings.some(
      (other) => other !== mine && other.queue === queue && other.begun <= mine.ended && other.ended >= mine.begun,
    )
    if (outcome.kind === 'ok' && isAlone) checker.limits.bind(queue, limits, kernel.now + seenAfter)
  }

  /** Every process sees a limit within 5 s, unless it was not running; a request that was sent before may arrive late. */
  #seenAfter(): number {
    const { faults, leaseTtl, deadline } = this.#simulation.settings
    return (
      LIMIT_SEEN_WITHIN +
      deadline +
      (faults['late-request'] > 0 ? 20_000 : 0) +
      (faults['stall-store'] > 0 ? 8_000 : 0) +
      Math.max(faults.pause > 0 ? 4 * leaseTtl : 0, faults['sleep-machine'] > 0 ? 21_000 : 0)
    )
  }

  // ── schedules ────────────────────────────────────────────────────────────────────────────────────────────────

  async #schedule(caller: Caller, n: number): Promise<void> {
    const isStrict = n === 0
    const outcome = await this.#simulation.calls.run(caller, `create schedule s${n}`, () =>
      caller.client.schedules.create({
        id: `s${n}`,
        type: 'recurring',
        input: { schedule: n },
        every: { milliseconds: EVERY },
        overlap: isStrict ? 'allow' : 'skip',
        catchUp: isStrict ? 'all' : 'last',
      }),
    )
    if (outcome.kind === 'ok' && isStrict) this.#hasStrictSchedule = true
  }

  /** Everything is open again: no pause, no limit; schedules stop firing, so that the queues can drain. */
  async restore(caller: Caller): Promise<void> {
    const { calls, checker, kernel, settings } = this.#simulation
    for (const queue of QUEUES) {
      checker.limits.forget(queue)
      const { client } = caller
      await calls.run(caller, `resume ${queue}`, () => client.queue(queue).resume({ force: true }))
      await calls.run(caller, `resume acme of ${queue}`, () => client.queue(queue).resume({ group: 'acme' }))
      await calls.run(caller, `limit ${queue} no more`, () => client.queue(queue).limit(null))
    }
    // Long enough for slots that were missed to be caught up.
    if (settings.schedules > 0) await kernel.sleep(3 * EVERY)
    for (let n = 0; n < settings.schedules; n++)
      await calls.run(caller, `pause schedule s${n}`, () => caller.client.schedules.pause(`s${n}`))
  }

  /**
   * Where missed slots are caught up and runs may overlap, every slot up to the cursor has its task. Whoever may have the schedule is asked in
   * turn: it stays where it is if it was created after everything had moved.
   */
  async checkSchedules(callers: readonly Caller[], followed: readonly Checker[]): Promise<void> {
    const { checker, calls, marks } = this.#simulation
    if (!this.#hasStrictSchedule) return
    const found = []
    for (const { client, host } of callers) {
      const outcome = await calls.run({ host }, 'read schedule s0', () => client.schedules.get('s0'))
      if (outcome.kind === 'ok') found.push(outcome.value)
    }
    const [schedule] = found
    if (schedule === undefined) return checker.violate('I9', 'schedule s0 was created and is lost')
    const { cursor, createdAt, incarnation } = schedule
    const seen = followed.flatMap(({ everSeen }) => [...everSeen.values()])
    const slots = seen.flatMap(({ idempotencyKey: key }) =>
      key?.startsWith(`schedule:s0:${incarnation}:`)
        ? [Date.parse(key.slice(`schedule:s0:${incarnation}:`.length))]
        : [],
    )
    // An operator who deletes a task ends its key too, and a scheduler that was paused may then fire the slot again.
    const fired = [...new Set(slots)].sort((a, b) => a - b)
    for (const [i, slot] of fired.entries())
      if (slot !== fired[0]! + i * EVERY)
        return checker.violate('I9', `the slot at ${new Date(fired[0]! + i * EVERY).toISOString()} was skipped`)
    if (fired.length > 0) marks.hit('a slot fired')
    const expected = Math.floor((cursor - createdAt) / EVERY)
    if (fired.length < expected) checker.violate('I9', `${expected} slots have passed, and ${fired.length} have a task`)
  }
}
