/** The handlers of the soak, as a module for `holdfast worker`. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { TaskContext } from '../../src/index.ts'
import { started } from './latencies.ts'

interface Dated {
  readonly at: number
}

/** For tests of the soak: what a handler that keeps something costs is seen. In bytes a task. */
const LEAK = Number(process.env['SOAK_LEAK'] ?? 0)
const leaked: Buffer[] = []

export const mail = ({ at }: Dated) => {
  started(at)
  if (LEAK > 0) leaked.push(Buffer.alloc(LEAK, 1))
  return { sent: true }
}

export const resize = async ({ at }: Dated, { signal }: TaskContext) => {
  await sleep(10, null, { signal })
  return { took: Date.now() - at }
}

const permanent = (message: string): Error => Object.assign(new Error(message), { name: 'PermanentError' })

/** Some fail once, some always, and some for good. */
export const charge = ({ n }: { readonly n: number }, { attempt }: TaskContext) => {
  // Another one each round: of a round's hundred tasks, charges always have the same places.
  const card = n + Math.floor(n / 100)
  if (card % 50 === 0) throw permanent(`card ${card % 7} was stolen`)
  if (card % 40 === 1) throw new Error(`bank ${card % 3} is closed`)
  if (card % 5 === 0 && attempt === 1) throw new Error('connection reset')
  return { charged: n }
}

export const onboard = async (_: unknown, ctx: TaskContext) => {
  const account = await ctx.step('account', () => ({ id: ctx.task.id, text: 'x'.repeat(500) }))
  ctx.progress({ done: 1 })
  await ctx.sleep('settle', '1s')
  return ctx.step('welcome', () => ({ to: account.id }))
}

export const approve = (_: unknown, ctx: TaskContext) => ctx.waitFor('decision', { timeout: '30s' })

export const poll = (_: unknown, ctx: TaskContext) =>
  ctx.task.rescheduleCount < 2 ? ctx.reschedule('1s') : { polled: ctx.task.rescheduleCount }

export const index = () => null
export const order = () => null
export const call = () => null
export const later = () => null
export const tick = () => null
