/** Reactive rate limits: a handler that hits one sleeps durably and frees its slot. Run it: node examples/rate-limits.ts */
import { connect, RescheduleError, RetryableError } from 'holdfast'

await using holdfast = await connect(process.argv[2] ?? 'memory:')

/** A circuit breaker that closes after three calls. */
let failures = 3
const breakerIsOpen = (): boolean => failures-- > 0

const worker = holdfast
  .worker({ concurrency: 2 })
  // The service is known to be down: try again later. Costs no retry; maxReschedules can limit it.
  .handle('charge', (_input, ctx) => (breakerIsOpen() ? ctx.reschedule('20ms') : { charged: true }))
  // The service answered with an error: a failure, retried with backoff.
  .handle('refund', (_input, ctx) => {
    if (ctx.attempt === 1) throw new RetryableError('502 from the bank')
    return { refunded: true }
  })
  // Outside market hours: sleep until the market opens, and extend the expiry by the same time.
  .handle('trade', (_input, ctx) => {
    if (ctx.attempt === 1) throw new RescheduleError('10ms', { extendExpiration: '10ms' })
    return { traded: true }
  })
worker.start()

const quick = { retryPolicy: { base: '5ms' } } as const
for (const type of ['charge', 'refund', 'trade']) {
  const task = await holdfast.submit(type, {}, { ...quick, ttl: '1h' })
  console.log(type, await holdfast.wait(task), `after ${(await holdfast.get(task.id)).attempts} attempts`)
}
