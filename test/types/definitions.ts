/**
 * What types must tell. Nothing here runs: `npm run check` compiles it, and a line that is expected to be an error and is none
 * is an error.
 */
import { DatabaseSync } from 'node:sqlite'
import { z } from 'zod'
import { connect, defineTask, type Task } from '../../src/index.ts'
import { drain } from '../../src/testing/index.ts'

const client = await connect('memory:')

/** Compiles only when both are the same type. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const same = <A, B>(_: Same<A, B>): void => {}

const resize = defineTask('resize', {
  input: z.object({ width: z.string().transform(Number) }),
  output: z.object({ done: z.boolean() }),
})
const plain = defineTask<{ to: string }, { sent: number }>('plain')

// ── the context's task has the input as it was submitted ─────────────────────────────────────────────────────────

client.worker().handle(resize, ({ width }, ctx) => {
  same<typeof width, number>(true)
  same<typeof ctx.task.input, { width: string }>(true)
  return { done: true }
})
client.worker().handle(plain, ({ to }, ctx) => {
  same<typeof to, string>(true)
  same<typeof ctx.task.input, { to: string }>(true)
  return { sent: 1 }
})
// @ts-expect-error: the output is another
client.worker().handle(plain, () => ({ sent: 'many' }))

// ── handleMany: parsed inputs, and one output or Error for each ──────────────────────────────────────────────────

client.worker().handleMany(resize, { size: 10 }, (tasks, ctx) =>
  tasks.map((task) => {
    same<typeof task.input.width, number>(true)
    const own = ctx.of(task)
    same<typeof own.task.input, { width: string }>(true)
    return task.input.width > 1 ? { done: true } : new Error('too small')
  }),
)
// @ts-expect-error: the output is another
client.worker().handleMany(plain, { size: 10 }, async (tasks) => tasks.map(() => ({ sent: 'many' })))
// @ts-expect-error: no size
client.worker().handleMany(plain, { wait: '1s' }, () => [])
// @ts-expect-error: coalesce belongs to one submit
defineTask('index', { coalesce: { key: 'k' } })

// ── submit, submitMany ───────────────────────────────────────────────────────────────────────────────────────────

const submitted = await client.submit(plain, { to: 'ann' })
same<typeof submitted, Task<{ to: string }, { sent: number }>>(true)
// @ts-expect-error: the input is another
void client.submit(plain, { to: 1 })

const [first, second, third] = await client.submitMany([
  { type: plain, input: { to: 'ann' } },
  { type: resize, input: { width: '3' }, priority: 1 },
  { type: 'by-name', input: 5 },
])
if (first.ok) same<typeof first.task, Task<{ to: string }, { sent: number }>>(true)
if (second.ok) same<typeof second.task.output, { done: boolean } | null>(true)
if (third.ok) same<typeof third.task, Task<unknown, unknown>>(true)
// @ts-expect-error: the input is another
void client.submitMany([{ type: plain, input: { to: 1 } }])
void client.submitMany(['a', 'b'].map((to) => ({ type: plain, input: { to } })))

// ── what JSON cannot hold ────────────────────────────────────────────────────────────────────────────────────────

void client.submit('by-name', { deep: [{ ok: null, n: 1 }] })
void client.submit('by-name', new Uint8Array())
void client.submit('by-name', JSON.parse('{}') as unknown)
// @ts-expect-error: a Date
void client.submit('by-name', { at: new Date() })
// @ts-expect-error: a BigInt
void client.submit('by-name', 1n)
// @ts-expect-error: a Map, deep inside
void client.submit('by-name', { deep: [{ map: new Map<string, string>() }] })
// @ts-expect-error: a function
void client.submit('by-name', { run: () => {} })

// ── get, wait ────────────────────────────────────────────────────────────────────────────────────────────────────

const read = await client.get(plain, 'id')
same<typeof read, Task<{ to: string }, { sent: number }>>(true)
const unknown = await client.get('id')
same<typeof unknown, Task<unknown, unknown>>(true)
const output = await client.wait(plain, 'id')
same<typeof output, { sent: number }>(true)
const ofTask = await client.wait(submitted)
same<typeof ofTask, { sent: number }>(true)

// ── schedules ────────────────────────────────────────────────────────────────────────────────────────────────────

void client.schedules.create({ id: 'a', type: plain, input: { to: 'ann' }, every: '1h' })
void client.schedules.ensure({ id: 'a', type: 'by-name', input: 5, cron: '0 6 * * *', timezone: 'UTC' })
// @ts-expect-error: the input is another
void client.schedules.create({ id: 'a', type: plain, input: { to: 1 }, every: '1h' })
// @ts-expect-error: the input is another
void client.schedules.ensure({ id: 'a', type: plain, input: 5, every: '1h' })
// @ts-expect-error: cron and every
void client.schedules.create({ id: 'a', type: 'by-name', input: 5, every: '1h', cron: '0 6 * * *' })
// @ts-expect-error: neither cron nor every
void client.schedules.create({ id: 'a', type: 'by-name', input: 5 })
// @ts-expect-error: a timezone belongs to cron
void client.schedules.create({ id: 'a', type: 'by-name', input: 5, every: '1h', timezone: 'UTC' })

// ── transactions ─────────────────────────────────────────────────────────────────────────────────────────────────

void client.submit('by-name', 1, { tx: new DatabaseSync(':memory:') })
void client.submit('by-name', 1, { tx: { query: async () => ({ rows: [] }) } })
// @ts-expect-error: no transaction
void client.submit('by-name', 1, { tx: {} })
// @ts-expect-error: no transaction
void client.submit('by-name', 1, { tx: 'begin' })

// ── drain ────────────────────────────────────────────────────────────────────────────────────────────────────────

void drain(client, [
  [plain, ({ to }) => ({ sent: to.length })],
  [resize, ({ width }) => ({ done: width > 1 })],
])
void drain(client, { plain: (input) => input })
// @ts-expect-error: the output is another
void drain(client, [[plain, () => ({ sent: 'many' })]])

// ── connect ──────────────────────────────────────────────────────────────────────────────────────────────────────

// @ts-expect-error: a variable that may not be set
void connect(process.env['DATABASE_URL'])
