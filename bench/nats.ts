/** Measures tasks on NATS JetStream, with the server's default sync and with every write synced, and the cost of waiting tasks. */
import { parseArgs } from 'node:util'
import { type Client, connect, type SubmitOptions, silentLogger } from '../src/index.ts'
import { type NatsServer, startNats } from '../test/servers/nats.ts'
import { machineFacts, Others } from './machine.ts'
import { medianOf } from './median.ts'
import { processMeter } from './meter.ts'

const HELP = `Measures tasks per second on a temporary nats-server.

  node bench/nats.ts [options]

  --tasks N          from submit to completed, in batches of 1,000 (default 10000; a tenth with sync_interval: always)
  --waiting N        pending while the first ones are run (default 200000)
  --few N            compare with this many pending; three quarters of them are run and timed (default 2000)
  --far N            of the far future, in addition to the few (default 5000)
  --concurrency N    of the one worker (default 200)
  --rounds N         of everything, taking turns; prints medians (default 5)
  --json             as JSON
`

const BATCH = 1_000

const { values } = parseArgs({
  options: {
    tasks: { type: 'string', default: '10000' },
    waiting: { type: 'string', default: '200000' },
    few: { type: 'string', default: '2000' },
    far: { type: 'string', default: '5000' },
    concurrency: { type: 'string', default: '200' },
    rounds: { type: 'string', default: '5' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
const few = Number(values.few)
/** Fewer than there are, because every queue is slower towards its end. */
const timed = Math.floor(few * 0.75)
const concurrency = Number(values.concurrency)
const rounds = Array.from({ length: Number(values.rounds) }, (_, n) => n)

const open = (address: string): Promise<Client> => connect(address, { create: true, logger: silentLogger })

const submit = async (client: Client, count: number, options: SubmitOptions = {}): Promise<void> => {
  for (let sent = 0; sent < count; sent += BATCH) {
    const items = Array.from({ length: Math.min(BATCH, count - sent) }, (_, n) => ({ type: 'work', input: { n } }))
    const results = await client.submitMany(items, options)
    if (results.some(({ ok }) => !ok)) throw new Error('a task was refused')
  }
}

/** A running worker: resolves when it has run this many tasks, and returns how many more it ran before it stopped. */
const work = (client: Client, count: number) => {
  const enough = Promise.withResolvers<void>()
  let left = count
  const worker = client.worker({ concurrency }).handle('work', () => {
    if (--left === 0) enough.resolve()
  })
  worker.start()
  const stop = async (): Promise<number> => {
    await worker.stop()
    return -left
  }
  return { enough: enough.promise, stop }
}

const perSecond = (count: number, since: number): number => (count * 1_000) / (performance.now() - since)

interface Through {
  readonly perSecond: number
  /** CPU per task, in microseconds: of this process and of the server (Linux only). */
  readonly own: number
  readonly servers: number | null
}

/** From the first submit until the last outcome is written; the worker has its own client, as in another process. */
const submitToComplete = async ({ url, pid }: NatsServer, bucket: string, count: number): Promise<Through> => {
  await using producer = await open(`${url}/${bucket}`)
  await using consumer = await open(`${url}/${bucket}`)
  const meter = processMeter(pid)
  const before = { own: process.cpuUsage(), servers: (await meter.read()).cpuSeconds }
  const begun = performance.now()
  const { enough, stop } = work(consumer, count)
  await submit(producer, count)
  await enough
  await stop()
  const rate = perSecond(count, begun)
  const { user, system } = process.cpuUsage(before.own)
  const { cpuSeconds } = await meter.read()
  const servers = cpuSeconds === null ? null : ((cpuSeconds - before.servers!) * 1e6) / count
  return { perSecond: rate, own: (user + system) / count, servers }
}

interface Queue {
  readonly producer: Client
  readonly consumer: Client
}

/** The clients stay connected, so that they are warm in every round. */
const prepared = async (address: string, waiting: number, far = 0): Promise<Queue> => {
  const queue = { producer: await open(address), consumer: await open(address) }
  await submit(queue.producer, far, { delay: '30d' })
  await submit(queue.producer, waiting)
  return queue
}

/** Runs the first waiting tasks, then adds as many again. */
const runSome = async ({ producer, consumer }: Queue): Promise<number> => {
  const begun = performance.now()
  const { enough, stop } = work(consumer, timed)
  await enough
  const rate = perSecond(timed, begun)
  const ran = timed + (await stop())
  await submit(producer, ran)
  return rate
}

type Rates = Record<'few' | 'waiting' | 'far', number>

const measureWaiting = async (server: NatsServer): Promise<Rates[]> => {
  const queues = {
    few: await prepared(`${server.url}/few`, few),
    far: await prepared(`${server.url}/far`, few, Number(values.far)),
    waiting: await prepared(`${server.url}/waiting`, Number(values.waiting)),
  }
  const one = async (): Promise<Rates> => ({
    few: await runSome(queues.few),
    waiting: await runSome(queues.waiting),
    far: await runSome(queues.far),
  })
  await one()
  const measured: Rates[] = []
  for (const _ of rounds) measured.push(await one())
  for (const { producer, consumer } of Object.values(queues)) await Promise.all([producer.close(), consumer.close()])
  return measured
}

const measure = async () => {
  const others = new Others()
  const [server, always] = await Promise.all([startNats(), startNats({ syncAlways: true })])
  try {
    await submitToComplete(server, 'warm-up', BATCH)
    const through = { default: [] as Through[], always: [] as Through[] }
    for (const n of rounds) {
      through.default.push(await submitToComplete(server, `rate-${n}`, Number(values.tasks)))
      through.always.push(await submitToComplete(always, `rate-${n}`, Number(values.tasks) / 10))
    }
    const waiting = await measureWaiting(server)
    for (const { pid } of [server, always]) others.ours((await processMeter(pid).read()).cpuSeconds ?? 0)
    const { user, system } = process.cpuUsage()
    others.ours((user + system) / 1e6)
    const machine = { ...machineFacts(), othersPercent: others.share }
    return { machine, server: server.version, submitToComplete: through, waiting }
  } finally {
    await Promise.all([server.remove(), always.remove()])
  }
}

const shown = (rate: number): string => `${Math.round(rate).toLocaleString('en')}/s`
const spread = (figures: readonly number[]): string =>
  `${shown(medianOf(figures))} (${shown(Math.min(...figures))} to ${shown(Math.max(...figures))})`

const throughOf = (figures: readonly Through[]): string => {
  const own = medianOf(figures.map((figure) => figure.own)).toFixed(0)
  const servers = medianOf(figures.map((figure) => figure.servers ?? Number.NaN)).toFixed(0)
  return `${spread(figures.map((figure) => figure.perSecond))}; CPU per task ${own} µs and ${servers} µs of the server`
}

const main = async (): Promise<void> => {
  if (values.help) return console.log(HELP)
  const measured = await measure()
  const { default: byDefault, always } = measured.submitToComplete
  const of = (name: keyof Rates): number[] => measured.waiting.map((rates) => rates[name])
  const ratioOf = (name: keyof Rates): number => medianOf(measured.waiting.map((rates) => rates[name] / rates.few))
  const ratios = { waiting: ratioOf('waiting'), far: ratioOf('far') }
  if (values.json) return console.log(JSON.stringify({ ...measured, ratios }, null, 2))
  const count = (text: string): string => Number(text).toLocaleString('en')
  const lines: readonly (readonly [string, string])[] = [
    ['submit to complete, default sync', throughOf(byDefault)],
    ['submit to complete, sync_interval: always', throughOf(always)],
    [`run with ${count(values.few)} waiting`, spread(of('few'))],
    [`the same with ${count(values.waiting)} waiting`, `${spread(of('waiting'))}, ${ratios.waiting.toFixed(2)} ×`],
    [`the same beside ${count(values.far)} of the far future`, `${spread(of('far'))}, ${ratios.far.toFixed(2)} ×`],
  ]
  console.log(`nats-server ${measured.server}, medians of ${rounds.length} rounds (least to most)\n`)
  for (const [what, figure] of lines) console.log(`  ${what.padEnd(46)} ${figure}`)
  console.log(`\nother processes used ${measured.machine.othersPercent} % of the machine during the run`)
}

await main()
