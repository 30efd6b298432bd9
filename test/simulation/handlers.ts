/** What the handlers of the simulation do: return, throw, sleep, hang, ignore their signal, kill their process. */

import { stepKey } from '../../src/core/steps/journal.ts'
import type { TaskRecord } from '../../src/core/task.ts'
import type { Handler, TaskContext } from '../../src/runtime/handler.ts'
import type { Random } from '../../src/testing/random.ts'
import type { Checker } from './checker/checker.ts'
import type { Start, Witness } from './checker/witness.ts'
import type { Host } from './host.ts'
import type { Marks } from './marks.ts'
import type { Trace } from './trace.ts'

/** Each handler has its manner; the queue of a type is fixed. */
export const TYPES = {
  quick: 'default',
  slow: 'default',
  moody: 'default',
  stubborn: 'mail',
  grouped: 'mail',
  killer: 'default',
  batch: 'mail',
  parent: 'default',
  stepped: 'mail',
  recurring: 'default',
} as const
export type Type = keyof typeof TYPES
export const TYPE_NAMES = Object.keys(TYPES) as readonly Type[]
export const QUEUES = ['default', 'mail'] as const

interface Parts {
  readonly host: Host
  readonly random: Random
  readonly witness: Witness
  readonly checker: Checker
  readonly marks: Marks
  readonly trace: Trace
  /** Without faults handlers behave: otherwise nothing would ever drain. */
  isHealed(): boolean
  childOf(parent: string, ctx: TaskContext): Promise<void>
}

export const handlersOf = (parts: Parts): Readonly<Record<Exclude<Type, 'batch'>, Handler>> => {
  const { host, random, witness, checker, marks, trace } = parts
  const { PermanentError, RetryableError } = host.holdfast
  const begin = (input: unknown, ctx: TaskContext): Start => {
    trace.line(host.name, `handler of ${ctx.task.type} ${ctx.task.id} begins under fence ${ctx.fence}`)
    ctx.signal.addEventListener('abort', () => marks.hit(`aborted: ${(ctx.signal.reason as { kind: string }).kind}`))
    return witness.start({
      id: ctx.task.id,
      fence: ctx.fence,
      worker: ctx.workerId,
      input: JSON.stringify(input),
      at: host.kernel.now,
    })
  }
  const returned = (start: Start, value: unknown): unknown => {
    start.output = JSON.stringify(value)
    return value
  }
  const value = (ctx: TaskContext): unknown => ({ by: ctx.workerId, fence: ctx.fence })
  /** Ends early when the signal aborts, as a good handler does. */
  const work = (length: number, ctx: TaskContext): Promise<void> =>
    new Promise((done) => {
      const cancel = host.after(length, done)
      ctx.signal.addEventListener('abort', () => {
        cancel()
        done()
      })
    })
  /** A durable step that tells the witness when its function runs, and with what it resolves. */
  const step = async (name: string, ctx: TaskContext, length: number, mayThrow: boolean): Promise<unknown> => {
    const { id, generation } = ctx.task
    const result = await ctx.step(name, async ({ key }) => {
      checker.steps.begins(checker, id, key, ctx.fence)
      await work(random.next() * length, ctx)
      if (mayThrow && random.chance(0.2) && !parts.isHealed()) throw new Error(`step ${name}`)
      const made = { of: key, by: ctx.fence, text: random.chance(0.1) ? 'large'.repeat(1_000) : random.below(1_000) }
      checker.steps.ran(key, made)
      return made
    })
    checker.steps.resolves(checker, id, stepKey({ id, generation } as TaskRecord, name), ctx.fence, result)
    return result
  }
  return {
    quick: (input, ctx) => returned(begin(input, ctx), value(ctx)),
    async slow(input, ctx) {
      const start = begin(input, ctx)
      const length = random.next() * (parts.isHealed() ? 500 : 9_000)
      ctx.progress({ at: 0 })
      await work(length / 2, ctx)
      ctx.progress({ at: 1 })
      await work(length / 2, ctx)
      if (ctx.signal.aborted) throw ctx.signal.reason
      return returned(start, value(ctx))
    },
    async moody(input, ctx) {
      const start = begin(input, ctx)
      const mood = random.next()
      await work(random.next() * 800, ctx)
      if (parts.isHealed()) return returned(start, value(ctx))
      if (mood < 0.25) throw new Error(`no luck with ${Math.floor(mood * 40)}`)
      if (mood < 0.3) throw new PermanentError('never')
      if (mood < 0.4) throw new RetryableError('later', { delay: '1s' })
      if (mood < 0.55) return ctx.reschedule({ milliseconds: Math.floor(random.next() * 4_000) })
      return returned(start, value(ctx))
    },
    /** Does not look at its signal, so it runs on beside its successor. */
    async stubborn(input, ctx) {
      const start = begin(input, ctx)
      await host.sleep(random.next() * (parts.isHealed() ? 500 : 12_000))
      if (ctx.signal.aborted) marks.hit('a handler went on after its lease was lost')
      if (random.chance(0.1) && !parts.isHealed()) await new Promise(() => {})
      return returned(start, value(ctx))
    },
    async grouped(input, ctx) {
      const start = begin(input, ctx)
      await work(random.next() * 1_500, ctx)
      return returned(start, value(ctx))
    },
    async killer(input, ctx) {
      begin(input, ctx)
      await work(random.next() * 300, ctx)
      if (parts.isHealed()) throw new Error('poison')
      marks.hit('poison')
      trace.line(host.name, `is killed by ${ctx.task.id}`)
      host.kill()
      return new Promise(() => {})
    },
    async parent(input, ctx) {
      const start = begin(input, ctx)
      await parts.childOf(ctx.task.id, ctx)
      return returned(start, value(ctx))
    },
    /** Steps one after another and beside each other, a sleep, and a wait for a signal, which every third task would wait for without end. */
    async stepped(input, ctx) {
      const start = begin(input, ctx)
      const n = Number.parseInt(ctx.task.id.slice(-2), 16)
      const first = await step('first', ctx, 400, false)
      if (n % 4 !== 0) await ctx.sleep('nap', { milliseconds: 100 + ((n * 37) % 4_000) })
      const both = await Promise.all([step('left', ctx, 300, true), step('right', ctx, 300, false)])
      if (random.chance(0.15) && !parts.isHealed()) throw new Error('between two steps')
      let word: unknown = 'none came'
      try {
        word = await ctx.waitFor('word', n % 3 === 0 ? {} : { timeout: { milliseconds: 500 + ((n * 53) % 5_000) } })
        checker.steps.takes(checker, ctx.task.id, word)
      } catch (error) {
        if ((error as Error).name !== 'SignalTimeout') throw error
        marks.hit('a wait for a signal timed out')
      }
      return returned(start, { first, both, word })
    },
    recurring: (input, ctx) => returned(begin(input, ctx), value(ctx)),
  }
}
