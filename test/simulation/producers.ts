/** Programs that submit: with ids, with keys, in batches, for later, with an expiry, as triggers. A submission that was unclear is repeated. */

import type { SubmitOptions } from '../../src/core/submission.ts'
import type { TaskRecord } from '../../src/core/task.ts'
import type { Random } from '../../src/testing/random.ts'
import type { Caller } from './callers.ts'
import type { Submitted } from './checker/witness.ts'
import { TYPES, type Type } from './handlers.ts'
import type { Simulation } from './simulation.ts'

const SUBMITTED: readonly Type[] = [
  'quick',
  'slow',
  'moody',
  'stubborn',
  'grouped',
  'killer',
  'batch',
  'parent',
  'stepped',
  'stepped',
]
const GROUPS = ['acme', 'umbrella', 'initech'] as const

export class Producers {
  readonly #simulation: Simulation
  readonly #random: Random
  #left: number
  #n = 0

  constructor(simulation: Simulation) {
    this.#simulation = simulation
    this.#random = simulation.kernel.random('producers')
    this.#left = simulation.settings.tasks
  }

  get isDone(): boolean {
    return this.#left <= 0
  }

  isChild({ tags }: TaskRecord): boolean {
    return tags?.['parent'] !== undefined
  }

  start(): void {
    void this.#produce()
  }

  /** A producer that dies is replaced by another process. */
  async #produce(): Promise<void> {
    const { settings, kernel } = this.#simulation
    let caller = await this.#simulation.connected('producer')
    const pace = (settings.faultyFor * (settings.isRush ? 0.08 : 0.8)) / settings.tasks
    while (this.#left > 0) {
      await kernel.sleep(this.#random.next() * 2 * pace)
      if (this.#simulation.isHealed) this.#left = 0
      caller = await this.#simulation.living(caller, 'producer')
      const count = Math.min(this.#left, this.#random.chance(0.2) ? 2 + this.#random.below(4) : 1)
      this.#left -= count
      if (count > 1) void this.#submitMany(caller, count)
      else void (this.#random.chance(0.15) ? this.#trigger(caller) : this.#submit(caller))
    }
  }

  #id(): string {
    return `01900000-0000-7000-8000-${(this.#simulation.settings.seed * 1_000 + ++this.#n).toString(16).padStart(12, '0')}`
  }

  #draw(): { type: Type; input: unknown; options: SubmitOptions; id: string; key: string | null } {
    const random = this.#random
    const type = random.chance(0.05) ? 'killer' : (random.pick(SUBMITTED.filter((one) => one !== 'killer')) as Type)
    const id = this.#id()
    const key = random.chance(0.3) ? `key ${random.below(12)}` : null
    const input = key === null ? { n: this.#n, text: random.chance(0.2) ? 'x'.repeat(200) : 'é\u2028"' } : { key }
    const options: SubmitOptions = {
      id,
      queue: TYPES[type],
      timeout: { milliseconds: 2_000 + random.below(8_000) },
      maxRetries: random.pick([0, 1, 3, 10]),
      maxReschedules: 5,
      retryPolicy: { base: '200ms', max: '5s' },
      priority: random.pick([0, 0, 0, 5, -5]),
      ...(type === 'grouped' || random.chance(0.1) ? { group: random.pick(GROUPS) } : null),
      ...(random.chance(0.15) ? { ttl: { milliseconds: 1_000 + random.below(20_000) } } : null),
      ...(random.chance(0.2) ? { delay: { milliseconds: random.below(6_000) } } : null),
      ...(key === null ? null : { idempotencyKey: `${type} ${key}` }),
    }
    return { type, input, options, id, key: key === null ? null : `${type} ${key}` }
  }

  async #submit(caller: Caller): Promise<void> {
    const { type, input, options, id, key } = this.#draw()
    const { calls, witness, kernel } = this.#simulation
    const submitted: Submitted = { id, key, coalesceKey: null, begunAt: kernel.now, outcome: 'info', given: null }
    witness.submits.push(submitted)
    witness.mayHave(id, input)
    for (let tries = 0; tries < 3; tries++) {
      if (tries > 0) this.#simulation.checker.repeated.add(id)
      const outcome = await calls.run(caller, `submit ${type} ${id}${key === null ? '' : ` under ${key}`}`, () =>
        caller.client.submit(type, input, options),
      )
      if (outcome.kind === 'ok') {
        submitted.outcome = 'ok'
        submitted.given = outcome.value.id
        return
      }
      if (outcome.kind === 'refused') {
        // Its id may have been submitted by the first try.
        submitted.outcome = tries === 0 ? 'refused' : 'info'
        return
      }
      this.#simulation.marks.hit('an unclear submission')
      // Half of them give up, so that tasks without an answer exist.
      if (this.#random.chance(0.5)) return
    }
  }

  async #submitMany(caller: Caller, count: number): Promise<void> {
    const { calls, witness, kernel, marks } = this.#simulation
    const drawn = Array.from({ length: count }, () => this.#draw())
    const submitted = drawn.map(({ id, key, input }) => {
      witness.mayHave(id, input)
      const one: Submitted = { id, key, coalesceKey: null, begunAt: kernel.now, outcome: 'info', given: null }
      witness.submits.push(one)
      return one
    })
    const outcome = await calls.run(caller, `submit ${drawn.map(({ id }) => id.slice(-6)).join(', ')}`, () =>
      caller.client.submitMany(drawn.map(({ type, input, options }) => ({ type, input, options }))),
    )
    if (outcome.kind !== 'ok') return
    for (const [i, result] of (outcome.value as readonly { ok: boolean; task?: { id: string } }[]).entries()) {
      if (!result.ok) continue
      submitted[i]!.outcome = 'ok'
      submitted[i]!.given = result.task!.id
    }
    marks.hit('a batch of submissions')
  }

  async #trigger(caller: Caller): Promise<void> {
    const { calls, witness, kernel, marks } = this.#simulation
    const n = this.#random.below(2)
    const key = `trigger ${n}`
    // One is often pending again after it has begun.
    const type = n === 0 ? 'quick' : 'moody'
    const input = { trigger: this.#n }
    const submitted: Submitted = {
      id: null,
      key: null,
      coalesceKey: key,
      begunAt: kernel.now,
      outcome: 'info',
      given: null,
    }
    const outcome = await calls.run(caller, `trigger ${key}`, () =>
      caller.client.submit(type, input, { coalesce: { key, delay: '2s', maxWait: '6s' }, tags: { parent: key } }),
    )
    if (outcome.kind !== 'ok') return
    submitted.outcome = 'ok'
    submitted.given = outcome.value.id
    witness.submits.push(submitted)
    marks.hit(outcome.value.coalesced ? 'a trigger joined a waiting task' : 'a trigger made a task')
  }
}
