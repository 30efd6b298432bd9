/** Submits a task, runs it and reads its result in one file. Run it: node examples/quick-start.ts */
import { connect, defineTask, PermanentError, RescheduleError } from 'holdfast'
import { z } from 'zod'

/** The contract: importable without the handler. */
export const sendReminder = defineTask('send_reminder', {
  input: z.object({ userId: z.string() }),
  output: z.object({ status: z.number() }),
  timeout: '30s',
})

/** Simulates a mail service that is busy the first time. */
let calls = 0
const callMailService = async (userId: string, fence: number): Promise<Response> => {
  if (userId === 'nobody') return new Response(null, { status: 404 })
  return calls++ === 0
    ? new Response(null, { status: 429, headers: { 'retry-after': '0' } })
    : new Response(`sent under fence ${fence}`)
}

await using holdfast = await connect(process.argv[2] ?? 'sqlite:./holdfast.db')

const worker = holdfast.worker({ concurrency: 10 }).handle(sendReminder, async (input, ctx) => {
  const res = await callMailService(input.userId, ctx.fence)
  if (res.status === 429) throw RescheduleError.after(res, '60s') // durable sleep: costs no retry, frees the worker
  if (res.status === 404) throw new PermanentError('no such user') // no retry
  return { status: res.status } // anything else that throws is retried with backoff
})
worker.start()

const task = await holdfast.submit(
  sendReminder,
  { userId: '123' },
  { ttl: '1h', idempotencyKey: `reminder-123-${process.pid}` },
)
const { status } = await holdfast.wait(task) // typed by the output schema
console.log(`${task.id} ended with ${status}`)
for (const { n, move, to, by } of await holdfast.history(task.id)) console.log(`  ${n}. ${move} → ${to} by ${by}`)
