/** Handlers that run in children of a worker: good ones, and every kind of bad one. */
import { spawn } from 'node:child_process'
import { isMainThread, threadId } from 'node:worker_threads'
import { PermanentError, RescheduleError, RetryableError, type TaskContext } from '../../../src/index.ts'

const DAY = 86_400_000

export default (input: unknown): unknown => ({ echo: input, pid: process.pid, thread: threadId, isMainThread })

export const bytes = (input: Uint8Array): Uint8Array => input.map((byte) => byte + 1)

export const loop = (): never => {
  for (;;);
}

export const eat = (): never => {
  const eaten: unknown[] = []
  for (;;) eaten.push(Array.from({ length: 10_000 }, (_, i) => ({ i })))
}

export const exit = (): never => process.exit(3)
export const abort = (): never => process.abort()
export const hang = (): Promise<never> => new Promise(() => setTimeout(() => {}, DAY))

export const uncaught = (): Promise<never> =>
  new Promise(() =>
    setTimeout(() => {
      throw new Error('nobody caught this')
    }, 1),
  )

/** Something that would live on if only the child was killed. */
export const spawns = (_: unknown, ctx: TaskContext): Promise<never> => {
  const child = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 3600000)'], { stdio: 'ignore' })
  ctx.progress({ pid: process.pid, started: child.pid })
  return hang()
}

export const tellsThenLoops = async (_: unknown, ctx: TaskContext): Promise<never> => {
  ctx.progress({ pid: process.pid })
  await new Promise((done) => setTimeout(done, 50))
  return loop()
}

export const context = async (_: unknown, ctx: TaskContext): Promise<unknown> => {
  ctx.log.info('hello from a child', { n: 1 })
  ctx.progress({ done: 0.5 })
  let code: unknown
  try {
    ctx.client
  } catch (error) {
    code = (error as { code: string }).code
  }
  const { id, type, input } = ctx.task
  return { id, type, input, fence: ctx.fence, attempt: ctx.attempt, workerId: ctx.workerId, client: code }
}

export const obeys = (_: unknown, ctx: TaskContext): Promise<never> => {
  ctx.progress({ pid: process.pid })
  return new Promise((_, fail) => ctx.signal.addEventListener('abort', () => fail(ctx.signal.reason)))
}

export const throws = (kind: string, ctx: TaskContext): unknown => {
  if (kind === 'permanent') throw new PermanentError('never again', { cause: new RangeError('too far') })
  if (kind === 'retryable') throw new RetryableError('once more')
  if (kind === 'coded') throw Object.assign(new TypeError('no such file'), { code: 'ENOENT' })
  if (kind === 'thrown reschedule') throw new RescheduleError('1h')
  if (kind === 'returned reschedule') return ctx.reschedule('2h')
  return null
}

export const returns = (what: string): unknown => {
  if (what === 'a date') return { at: new Date(0), gone: undefined }
  if (what === 'a bigint') return { n: 1n }
  const cycle: Record<string, unknown> = { a: 1 }
  cycle['self'] = cycle
  return what === 'a cycle' ? cycle : 'x'.repeat(2 * 1_024 * 1_024)
}

// ── durable steps ────────────────────────────────────────────────────────────────────────────────────────────────

/** Two steps with a sleep and a wait between them. Each step returns the attempt in which it ran. */
export const durable = async (_: unknown, ctx: TaskContext): Promise<unknown> => {
  const first = await ctx.step('first', ({ key }) => ({ key, attempt: ctx.attempt }))
  await ctx.sleep('nap', '50ms')
  const sent = await ctx.waitFor('go', { schema: atMostTen })
  const bytes = await ctx.step('bytes', () => new Uint8Array([0, 255]))
  const names = (await ctx.steps()).map(({ name, status }) => `${name} ${status}`)
  return { first, sent, bytes: bytes instanceof Uint8Array ? [...bytes] : bytes, names, last: ctx.attempt }
}

const atMostTen = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value: unknown) =>
      typeof value === 'number' && value <= 10 ? { value } : { issues: [{ message: 'is more than ten' }] },
  },
} as const

/** What each of these throws, by name and code. */
export const misused = async (_: unknown, ctx: TaskContext): Promise<unknown> => {
  const why = async (work: () => Promise<unknown>): Promise<string> => {
    try {
      await work()
      return 'nothing'
    } catch (error) {
      const { name, code, message } = error as Error & { code?: string }
      return name === 'HoldfastError' ? code! : `${name}: ${message}`
    }
  }
  await ctx.step('one', () => 1)
  return [
    await why(() => ctx.step('one', () => 2)),
    await why(() => ctx.step('', () => 2)),
    await why(() => ctx.step('odd', () => 7n)),
    await why(() => ctx.step('deep', () => ctx.sleep('nap', '1h'))),
    await why(() => ctx.step('none', 5 as never)),
    await why(() => ctx.waitFor('late', { timeout: 0 })),
    await why(() => ctx.waitFor('bad', { schema: atMostTen })),
  ]
}

export const swallowsPark = async (_: unknown, ctx: TaskContext): Promise<unknown> => {
  const why = await ctx.sleep('nap', '50ms').catch((error: unknown) => (error as Error).name)
  if (why !== undefined) await ctx.step('after', () => why).catch(() => {})
  return `run ${ctx.attempt}`
}

/** Dies after its first step is recorded, in its first run. */
export const diesAfterStep = async (_: unknown, ctx: TaskContext): Promise<unknown> => {
  const pid = await ctx.step('one', () => process.pid)
  if (ctx.attempt === 1) process.exit(3)
  return { recorded: pid, attempt: ctx.attempt }
}
