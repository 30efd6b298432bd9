/**
 * Some hours in the life of a shop, on a clock of their own: seven queues, fourteen types, failures, a stuck handler, a paused queue, limits,
 * schedules and steps. Neither dice nor the machine's clock: every run makes the same tasks. Then time goes on as outside.
 */
import { type Client, connect, PermanentError, silentLogger, type Worker } from '../../src/index.ts'
import { FakeClock } from '../../src/testing/index.ts'

/** A busy afternoon, the same for every picture. */
const UNTIL = Date.UTC(2026, 10, 18, 14, 42, 7)
const SECOND = 1_000
const MINUTE = 60 * SECOND
const TICK = 100

export interface Day {
  readonly client: Client
  /** A task that failed, slept, and completed. */
  readonly story: string
  /** A task of steps that waits for a signal. */
  readonly parked: string
  /** A task whose handler does not stop. */
  readonly stuck: string
  /** Recorded through the whole day. */
  readonly charts: ReturnType<Client['charts']>
  stop(): Promise<void>
}

/** Even numbers from 0 to 1, by the index alone. */
const dice = (n: number): number => {
  const mixed = Math.imul(n ^ (n >>> 15), 0x2c1b3c6d) ^ 0x5bd1e995
  return ((Math.imul(mixed ^ (mixed >>> 12), 0x297a2d39) >>> 0) % 10_000) / 10_000
}

const CUSTOMERS = ['acme', 'northwind', 'globex', 'initech', 'umbrella', 'hooli'] as const
const customer = (n: number): string => CUSTOMERS[Math.floor(dice(n + 77) * CUSTOMERS.length)]!

interface Kind {
  readonly type: string
  readonly queue: string
  /** Of a hundred tasks. */
  readonly share: number
  /** How long a run takes. */
  readonly takes: readonly [least: number, most: number]
  readonly input: (n: number) => object
  /** null: it succeeds. */
  readonly fault?: (n: number, attempt: number) => Error | null
  readonly output?: (n: number) => object
}

const order = (n: number): string => `ord_${48_210 + n}`

const KINDS: readonly Kind[] = [
  {
    type: 'charge_card',
    queue: 'payments',
    share: 14,
    takes: [180, 900],
    input: (n) => ({ order: order(n), amount: 1_900 + ((n * 37) % 9_000), currency: 'EUR' }),
    fault: (n, attempt) =>
      dice(n + 5) < 0.025
        ? new PermanentError(`card of ${order(n)} was declined: insufficient funds`)
        : attempt === 1 && dice(n + 6) < 0.05
          ? new Error('psp answered 502')
          : null,
    output: (n) => ({ charge: `ch_${n.toString(36)}`, captured: true }),
  },
  {
    type: 'refund_payment',
    queue: 'payments',
    share: 2,
    takes: [300, 1_200],
    input: (n) => ({ order: order(n), reason: 'returned' }),
  },
  {
    type: 'send_receipt',
    queue: 'mail',
    share: 16,
    takes: [60, 420],
    input: (n) => ({ order: order(n), template: 'receipt-v3' }),
    fault: (n, attempt) => (attempt < 3 && dice(n + 9) < 0.06 ? new Error('SMTP 451: mailbox busy, try again') : null),
  },
  {
    type: 'send_reset_link',
    queue: 'mail',
    share: 5,
    takes: [50, 240],
    input: (n) => ({ user: 9_000 + n }),
  },
  {
    type: 'send_digest',
    queue: 'mail',
    share: 6,
    takes: [120, 600],
    input: (n) => ({ user: 9_000 + n, week: 47 }),
    fault: (n) => (dice(n + 13) < 0.03 ? new PermanentError(`address of user ${9_000 + n} does not exist`) : null),
  },
  {
    type: 'resize_image',
    queue: 'media',
    share: 17,
    takes: [250, 1_400],
    input: (n) => ({ image: `products/${n}.jpg`, sizes: [320, 640, 1280] }),
  },
  {
    type: 'transcode_video',
    queue: 'media',
    share: 1,
    takes: [20_000, 90_000],
    input: (n) => ({ video: `uploads/${n}.mov`, preset: '1080p' }),
  },
  {
    type: 'deliver_webhook',
    queue: 'webhooks',
    share: 18,
    takes: [90, 800],
    input: (n) => ({ event: 'order.paid', order: order(n), endpoint: `https://hooks.${customer(n)}.example/in` }),
    fault: (n, attempt) =>
      customer(n) === 'umbrella' && dice(n + 17) < 0.3
        ? new Error('connect ETIMEDOUT hooks.umbrella.example:443')
        : attempt === 1 && dice(n + 19) < 0.04
          ? new Error('endpoint answered 503')
          : null,
  },
  {
    type: 'index_product',
    queue: 'search',
    share: 12,
    takes: [20, 160],
    input: (n) => ({ product: n % 4_000 }),
  },
  {
    type: 'sync_crm',
    queue: 'sync',
    share: 9,
    takes: [700, 2_600],
    input: (n) => ({ account: customer(n), changed: ['email', 'plan'] }),
  },
]

const WORKERS: readonly (readonly [id: string, queues: readonly string[], concurrency: number])[] = [
  ['payments-1', ['payments', 'orders'], 6],
  ['mail-1', ['mail'], 8],
  ['mail-2', ['mail', 'webhooks'], 8],
  ['media-1', ['media'], 2],
  ['hooks-1', ['webhooks', 'search'], 6],
  ['sync-1', ['sync', 'reports'], 4],
]

/** The kind at this place of a hundred. */
const kindAt = (place: number): Kind => {
  let from = 0
  for (const kind of KINDS) {
    from += kind.share
    if (place < from) return kind
  }
  return KINDS[0]!
}

class Shop {
  readonly clock: FakeClock
  readonly client: Client
  #n = 0
  /** Tasks that are owed: the rate is no whole number. */
  #owed = 0

  constructor(clock: FakeClock, client: Client) {
    this.clock = clock
    this.client = client
  }

  rest(length: number, signal?: AbortSignal): Promise<void> {
    return new Promise((done, fail) => {
      const cancel = this.clock.after(length, done)
      signal?.addEventListener('abort', () => {
        cancel()
        fail(signal.reason)
      })
    })
  }

  /** Everything that this worker serves, and what a task of each type does. */
  worker(id: string, queues: readonly string[], concurrency: number): Worker {
    const worker = this.client.worker({ id, queues, concurrency })
    for (const { type, queue, takes, fault, output } of KINDS) {
      if (!queues.includes(queue)) continue
      worker.handle(type, async (input, ctx) => {
        const { n } = input as { n: number }
        const [least, most] = takes
        await this.rest(least + dice(n * 31 + ctx.task.attempts) * (most - least), ctx.signal)
        const thrown = fault?.(n, ctx.task.attempts) ?? null
        if (thrown !== null) throw thrown
        return output?.(n) ?? null
      })
    }
    if (queues.includes('orders')) this.#handleOrders(worker)
    if (queues.includes('reports')) this.#handleReports(worker)
    if (queues.includes('search')) worker.handle('rebuild_index', () => new Promise(() => {}))
    return worker
  }

  #handleOrders(worker: Worker): void {
    worker
      .handle('fulfil_order', async (_, ctx) => {
        await ctx.step('reserve stock', async () => {
          await this.rest(240)
          return { warehouse: 'HH-2', shelf: 'B14' }
        })
        await ctx.step('charge the card', async () => {
          await this.rest(610)
          return { charge: 'ch_9x2' }
        })
        const parcel = await ctx.waitFor('parcel-handed-over', { timeout: '2d' })
        return { parcel }
      })
      .handle('import_feed', async (_, ctx) => {
        await this.rest(700 + 260 * ctx.task.attempts)
        if (ctx.task.attempts === 1) throw new Error('feeds.globex.example answered 503')
        if (ctx.task.attempts === 2) return ctx.reschedule('40s')
        return { products: 381, skipped: 2, changed: { price: 44, stock: 190 } }
      })
  }

  #handleReports(worker: Worker): void {
    worker.handle('export_report', async (_, ctx) => {
      for (let page = 1; page <= 400; page++) {
        await ctx.progress({ percent: Math.round(page / 4), page })
        await this.rest(1_500, ctx.signal)
      }
      return null
    })
  }

  /** More at some times than at others. */
  async submitFor(length: number): Promise<void> {
    const minute = (this.clock.wall() % (60 * MINUTE)) / MINUTE
    const rate = 1.1 + 0.55 * Math.sin(minute / 4.4) + 0.3 * Math.sin(minute / 1.3)
    this.#owed += (rate * length) / SECOND
    const items = []
    for (; this.#owed >= 1; this.#owed--) items.push(this.#next())
    if (items.length > 0) await this.client.submitMany(items)
  }

  #next() {
    const n = ++this.#n
    const kind = kindAt(dice(n) * 100)
    const of = customer(n)
    return {
      type: kind.type,
      input: { ...kind.input(n), n },
      queue: kind.queue,
      tags: { customer: of, region: n % 3 === 0 ? 'us' : 'eu' },
      ...((kind.queue === 'sync' || kind.queue === 'webhooks') && { group: of }),
      maxRetries: kind.type === 'deliver_webhook' ? 2 : 3,
      retryPolicy: { base: '4s' as const, jitter: 'none' as const },
    }
  }
}

export const liveThroughADay = async ({ minutes }: { readonly minutes: number }): Promise<Day> => {
  const clock = new FakeClock({ now: UNTIL - minutes * MINUTE })
  const client = await connect('memory:', { clock, random: clock.random, name: 'shop@web-1', logger: silentLogger })
  const shop = new Shop(clock, client)
  const ann = client.as('ann')
  await ann.queue('sync').limit({ concurrency: 3, perGroup: 1, fair: true })
  await ann.queue('webhooks').limit({ concurrency: 8, rate: '300/1m' })
  await schedulesOf(client)
  const charts = client.charts().start()
  const workers = WORKERS.map(([id, queues, concurrency]) => shop.worker(id, queues, concurrency))
  const running = workers.map((worker) => worker.run())
  const pass = async (length: number, submitting = true): Promise<void> => {
    for (let passed = 0; passed < length; passed += SECOND) {
      if (submitting) await shop.submitFor(SECOND)
      await clock.advance(SECOND)
    }
  }
  await pass((minutes - 4) * MINUTE)
  const { id: stuck } = await client.submit(
    'rebuild_index',
    { shard: 3 },
    { queue: 'search', timeout: '30s', maxRetries: 0 },
  )
  const { id: story } = await client.submit(
    'import_feed',
    { feed: 7, url: 'https://feeds.globex.example/products.xml', limit: 500, since: null },
    {
      queue: 'orders',
      tags: { customer: 'globex', team: 'catalogue' },
      idempotencyKey: 'feed-7',
      retryPolicy: { base: '15s', jitter: 'none' },
    },
  )
  await client.submit('export_report', { month: '2026-10', format: 'xlsx' }, { queue: 'reports', timeout: '1h' })
  await pass(2 * MINUTE)
  await ann.queue('media').pause({ reason: 'image service is being moved, back at 15:30' })
  await ann.queue('webhooks').pause({ group: 'umbrella', reason: 'their endpoint is down', until: UNTIL + 28 * MINUTE })
  const { id: parked } = await client.submit(
    'fulfil_order',
    { order: order(4_711), items: 3 },
    { queue: 'orders', tags: { customer: 'hooli', region: 'eu' } },
  )
  for (let user = 1; user <= 9; user++)
    await client.submit('send_digest', { user, week: 48 }, { queue: 'mail', delay: '3h' })
  const { id: wrong } = await client.submit('send_digest', { user: 10, week: 48 }, { queue: 'mail', delay: '3h' })
  await ann.cancel(wrong, { reason: 'unsubscribed' })
  await pass(2 * MINUTE)
  const goOn = goingOn(clock, (length) => shop.submitFor(length))
  return {
    client,
    story,
    parked,
    stuck,
    charts,
    stop: async () => {
      await goOn.stop()
      const stopping = Promise.all(workers.map((worker) => worker.stop({ timeout: '1s' })))
      await clock.advance(5 * SECOND)
      await stopping
      await Promise.all(running)
      await client.close()
    },
  }
}

/** The clock follows that of the machine from now on. */
const goingOn = (clock: FakeClock, submit: (length: number) => Promise<void>) => {
  let at = performance.now()
  let isStopped = false
  const going = (async () => {
    while (!isStopped) {
      await new Promise((done) => setTimeout(done, TICK))
      const passed = performance.now() - at
      at += passed
      await submit(passed)
      await clock.advance(passed)
    }
  })()
  return {
    stop: () => {
      isStopped = true
      return going
    },
  }
}

const schedulesOf = async (client: Client): Promise<void> => {
  const { schedules } = client
  await schedules.create({
    id: 'close-books',
    type: 'close_books',
    input: {},
    cron: '0 3 * * *',
    timezone: 'Europe/Berlin',
  })
  await schedules.create({
    id: 'feed-globex',
    type: 'index_product',
    input: { product: 1, n: 1 },
    every: '5m',
    options: { queue: 'search' },
  })
  await schedules.create({
    id: 'poll-warehouse',
    type: 'sync_crm',
    input: { account: 'warehouse', n: 2 },
    every: '3m',
    mode: 'fixed-delay',
    options: { queue: 'sync' },
  })
  await schedules.create({
    id: 'weekly-digest',
    type: 'send_digest',
    input: { week: 48 },
    cron: '30 7 * * 1',
    timezone: 'America/New_York',
  })
  await schedules.create({ id: 'purge-uploads', type: 'purge_uploads', input: {}, cron: '0 */6 * * *' })
  await schedules.pause('purge-uploads')
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
