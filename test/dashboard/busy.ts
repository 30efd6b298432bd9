/** A store with all sorts of work in it, and workers that go on with it. */
import { setTimeout as pause } from 'node:timers/promises'
import { type Client, PermanentError } from '../../src/index.ts'

export interface Busy {
  /** A task that failed, slept, and completed. */
  readonly story: string
  stop(): Promise<void>
}

const LONG = 'x'.repeat(120)

/** A queue, a worker, a schedule and a dead letter whose names and payloads are long and without a space: the letter's id. */
export const addLongNames = async (client: Client): Promise<string> => {
  const { id } = await client.submit(LONG, { [LONG]: LONG }, { queue: LONG, tags: { [LONG.slice(60)]: LONG } })
  const worker = client.worker({ id: `worker-${LONG}`, queues: [LONG] }).handle(LONG, () => {
    throw new PermanentError(LONG.repeat(3))
  })
  await worker.drain()
  await client.schedules.create({ id: LONG, type: LONG, input: {}, every: '1h', paused: true })
  return id
}

/** Neither dice nor clock: each run of the tests sees the same work. */
const spread = (n: number, most: number): number => (n * 7_919) % most

export const beBusy = async (client: Client): Promise<Busy> => {
  const stopping = new AbortController()
  const workers = [
    client
      .worker({ id: 'mail-1', queues: ['mail', 'default'], concurrency: 8 })
      .handle('send_reminder', async (input) => {
        const { user } = input as { user: number }
        await pause(20 + spread(user, 380))
        if (user % 9 === 0) throw new Error('SMTP 451: mailbox busy')
        return { sent: true }
      })
      .handle('charge_card', async (input) => {
        const { user } = input as { user: number }
        await pause(60 + spread(user, 500))
        if (user % 11 === 0) throw new PermanentError(`card ${user} was declined`)
        return { charged: true }
      })
      .handle('import_feed', async (_, ctx) => {
        await pause(90 + 60 * ctx.task.attempts)
        if (ctx.task.attempts === 1) throw new Error('upstream answered 503')
        if (ctx.task.attempts === 2) return ctx.reschedule('1s')
        return { items: 381, skipped: 2 }
      }),
    client.worker({ id: 'render-1', queues: ['render'], concurrency: 2 }).handle('render_report', async (_, ctx) => {
      for (let page = 1; !ctx.signal.aborted; page++) {
        await ctx.progress(page / 400)
        await pause(500, undefined, { signal: ctx.signal })
      }
    }),
  ]
  const running = workers.map((worker) => worker.run())
  const { id: story } = await client.submit(
    'import_feed',
    { feed: 7, url: 'https://example.com/feed.xml', limit: 500, since: null },
    { tags: { team: 'data', env: 'prod' }, idempotencyKey: 'feed-7', retryPolicy: { base: '700ms', jitter: 'none' } },
  )
  for (let n = 0; n < 3; n++) await client.submit('render_report', { month: n + 1 }, { queue: 'render' })
  for (let n = 0; n < 40; n++) await client.submit('thumbnail', { image: n }, { queue: 'media' })
  for (let n = 0; n < 9; n++) await client.submit('digest', { user: n }, { queue: 'mail', delay: '2h' })
  await client.queue('media').pause({ reason: 'a new release' })
  await client.schedules.create({ id: 'nightly-report', type: 'report', input: {}, cron: '0 3 * * *' })
  await client.schedules.create({ id: 'feed-import', type: 'import_feed', input: { feed: 7 }, every: '15m' })
  const submitting = submitOn(client, stopping.signal)
  await client.wait(story)
  return {
    story,
    stop: async () => {
      stopping.abort()
      await submitting
      await Promise.all(workers.map((worker) => worker.stop({ timeout: '1s' })))
      await Promise.all(running)
    },
  }
}

/** A few each moment, more at times. */
const submitOn = async (client: Client, signal: AbortSignal): Promise<void> => {
  for (let n = 1; !signal.aborted; n++) {
    const wave = 1 + Math.round(1 + Math.sin(n / 9))
    const items = Array.from({ length: wave }, (_, i) => ({
      type: (n + i) % 3 === 0 ? 'charge_card' : 'send_reminder',
      input: { user: n * 7 + i },
      queue: 'mail',
      retryPolicy: { base: '400ms' as const },
    }))
    await client.submitMany(items)
    await pause(180 + spread(n, 160), undefined, { signal }).catch(() => {})
  }
}
