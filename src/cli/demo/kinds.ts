/** The five kinds of tasks in the demo, with their handlers. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Handler, SubmitOptions, TaskContext } from '../../index.ts'

export const KIND_NAMES = ['ok', 'flaky', 'rate-limited', 'expiring', 'poison'] as const
export type KindName = (typeof KIND_NAMES)[number]

/** The concurrency of each worker. */
export const SLOTS = 4

/** Its number, how long a run takes, and how many runs fail before one succeeds. */
export interface DemoInput {
  readonly n: number
  readonly work: number
  readonly troubles: number
}

interface Kind {
  readonly what: string
  readonly count: number
  readonly options: SubmitOptions
  readonly input: (n: number) => DemoInput
  readonly handler: Handler<DemoInput>
}

const SOON = { base: '300ms', max: '1500ms' } as const

const work = (input: DemoInput, { signal }: TaskContext<DemoInput>): Promise<void> =>
  pause(input.work, undefined, { signal })

export const KINDS: Readonly<Record<KindName, Kind>> = {
  ok: {
    what: 'succeeds',
    count: 130,
    options: {},
    input: (n) => ({ n, work: 250 + ((n * 97) % 300), troubles: 0 }),
    handler: async (input, ctx) => {
      await work(input, ctx)
      return { n: input.n }
    },
  },
  flaky: {
    what: 'fails once or twice, then succeeds',
    count: 24,
    options: { priority: 10, maxRetries: 5, retryPolicy: SOON },
    input: (n) => ({ n, work: 120 + ((n * 31) % 100), troubles: 1 + (n % 2) }),
    handler: async (input, ctx) => {
      await work(input, ctx)
      if (ctx.attempt <= input.troubles) throw new Error('503 Service Unavailable')
      return { n: input.n, attempts: ctx.attempt }
    },
  },
  'rate-limited': {
    what: 'gets a 429, sleeps in the store, runs again',
    count: 16,
    options: { priority: 10, maxReschedules: 10 },
    input: (n) => ({ n, work: 80, troubles: 1 + (n % 3) }),
    handler: async (input, ctx) => {
      await work(input, ctx)
      if (ctx.task.rescheduleCount < input.troubles) return ctx.reschedule('1s')
      return { n: input.n, sleeps: input.troubles }
    },
  },
  expiring: {
    what: 'expires after 2.5s, and waits behind the others',
    count: 12,
    options: { priority: -10, ttl: '2500ms' },
    input: (n) => ({ n, work: 100, troubles: 0 }),
    handler: work,
  },
  poison: {
    what: 'always fails: three runs, then dead',
    count: 6,
    options: { priority: 10, maxRetries: 2, retryPolicy: SOON },
    input: (n) => ({ n, work: 60, troubles: Number.MAX_SAFE_INTEGER }),
    handler: async (input, ctx) => {
      await work(input, ctx)
      throw new Error(`cannot parse page ${input.n}`)
    },
  },
}
