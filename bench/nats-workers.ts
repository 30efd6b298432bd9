/** NATS JetStream as deployed: several worker processes, several types, and the requests of idle workers. */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { Client } from '../src/index.ts'
import { type NatsServer, startNats } from '../test/servers/nats.ts'
import { Remote } from './deployment/remote.ts'
import { machineFacts, Others } from './machine.ts'
import { medianOf } from './median.ts'
import { processMeter } from './meter.ts'
import type { WorkerUse, WorkerVerbs } from './nats-worker-process.ts'
import { loadHoldfast } from './systems/holdfast.ts'

const HELP = `Drains a queue by worker processes, and counts the messages of idle ones, on a temporary nats-server. The workers are at
work before: each has run 2,000 tasks of a queue of its own.

  npm run build && node bench/nats-workers.ts [options]

  --tasks N          that wait in one queue, of all types in turn (default 20000)
  --types N          against one type (default 10)
  --workers N        processes against one process (default 4)
  --concurrency N    of each worker (default 100)
  --rounds N         of everything, taking turns; prints medians (default 3)
  --idle N           seconds of counting messages of an idle worker (default 60; 0: none)
  --json             as JSON
`

const BATCH = 1_000
const QUEUE = 'default'
/** Per worker process. */
const WARM_UP = 2_000

const { values } = parseArgs({
  options: {
    tasks: { type: 'string', default: '20000' },
    types: { type: 'string', default: '10' },
    workers: { type: 'string', default: '4' },
    concurrency: { type: 'string', default: '100' },
    rounds: { type: 'string', default: '3' },
    idle: { type: 'string', default: '60' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
const tasks = Number(values.tasks)
const concurrency = Number(values.concurrency)

interface Shape {
  readonly types: number
  readonly workers: number
}

interface Drained {
  readonly perSecond: number
  /** CPU per task, in microseconds: of all workers together, and of the server (Linux only). */
  readonly own: number
  readonly servers: number
}

const typesOf = (count: number): string[] => Array.from({ length: count }, (_, n) => `work-${n}`)

const withWorkers = async <T>(
  use: WorkerUse,
  count: number,
  then: (workers: readonly Remote<WorkerVerbs>[]) => Promise<T>,
): Promise<T> => {
  const file = new URL('./nats-worker-process.ts', import.meta.url)
  const workers = Array.from({ length: count }, () => new Remote<WorkerVerbs>(file, {}, []))
  try {
    await Promise.all(workers.map((worker) => worker.call('open', use)))
    const result = await then(workers)
    await Promise.all(workers.map((worker) => worker.call('close')))
    return result
  } finally {
    await Promise.all(workers.map((worker) => worker.end()))
  }
}

const open = async (address: string) => {
  const holdfast = await loadHoldfast()
  return holdfast.connect(address, { create: true, logger: holdfast.silentLogger })
}

const submit = async (client: Client, types: readonly string[], count: number): Promise<void> => {
  for (let sent = 0; sent < count; sent += BATCH) {
    const items = Array.from({ length: Math.min(BATCH, count - sent) }, (_, n) => ({
      type: types[n % types.length]!,
      input: { n },
    }))
    const results = await client.submitMany(items)
    if (results.some(({ ok }) => !ok)) throw new Error('a task was refused')
  }
}

const cpuOf = async (workers: readonly Remote<WorkerVerbs>[]): Promise<number> =>
  (await Promise.all(workers.map((worker) => worker.call('cpuSeconds')))).reduce((sum, one) => sum + one, 0)

const drain = async (server: NatsServer, bucket: string, { types, workers: count }: Shape): Promise<Drained> => {
  const address = `${server.url}/${bucket}`
  await using client = await open(address)
  await client.queue(QUEUE).pause()
  await submit(client, typesOf(types), tasks)
  const use: WorkerUse = { address, types: typesOf(types), queues: [QUEUE], concurrency, warmUp: WARM_UP }
  return await withWorkers(use, count, async (workers) => {
    const meter = processMeter(server.pid)
    const enough = Promise.withResolvers<void>()
    // Reports the first failure.
    enough.promise.catch(() => {})
    const ended = workers.map(() => 0)
    for (const [i, worker] of workers.entries()) {
      worker.onNote = (note) => {
        ended[i] = note as number
        if (ended.reduce((sum, one) => sum + one, 0) >= tasks) enough.resolve()
      }
      worker.onEnd = enough.reject
    }
    const before = { own: await cpuOf(workers), servers: (await meter.read()).cpuSeconds ?? 0 }
    await client.queue(QUEUE).resume()
    const begun = performance.now()
    await Promise.all(workers.map((worker) => worker.call('go', { queue: QUEUE })))
    await enough.promise
    const took = performance.now() - begun
    const own = (await cpuOf(workers)) - before.own
    const servers = ((await meter.read()).cpuSeconds ?? Number.NaN) - before.servers
    for (const worker of workers) worker.onEnd = () => {}
    return { perSecond: (tasks * 1_000) / took, own: (own * 1e6) / tasks, servers: (servers * 1e6) / tasks }
  })
}

interface Idle {
  readonly consumers: number
  readonly messagesAMinute: number
}

const PRIORITIES = [0, 5]
const QUEUES = ['one', 'two', 'three', 'four', 'five']
/** By then the start-up cost is over. */
const SETTLED_MS = 10_000

const jsonOf = async <T>(url: string): Promise<T> => (await (await fetch(url)).json()) as T

/** One worker with five queues, each of which has had every type with two priorities. */
const idle = async (server: NatsServer, types: number): Promise<Idle> => {
  const address = `${server.url}/idle-${types}`
  const names = typesOf(types)
  {
    await using client = await open(address)
    for (const queue of QUEUES)
      for (const priority of PRIORITIES)
        await client.submitMany(names.map((type) => ({ type, input: null, queue, priority })))
  }
  return withWorkers({ address, types: names, queues: QUEUES, concurrency: 10, warmUp: 0 }, 1, async () => {
    await sleep(SETTLED_MS)
    const count = async (): Promise<number> => {
      const { in_msgs, out_msgs } = await jsonOf<{ in_msgs: number; out_msgs: number }>(`${server.monitor}/varz`)
      return in_msgs + out_msgs
    }
    const before = await count()
    await sleep(Number(values.idle) * 1_000)
    const messagesAMinute = (((await count()) - before) * 60) / Number(values.idle)
    const { consumers } = await jsonOf<{ consumers: number }>(`${server.monitor}/jsz`)
    return { consumers, messagesAMinute }
  })
}

const measure = async () => {
  const others = new Others()
  const shapes: readonly Shape[] = [1, Number(values.workers)].flatMap((workers) =>
    [1, Number(values.types)].map((types) => ({ types, workers })),
  )
  const drains = shapes.map((shape) => ({ ...shape, rounds: [] as Drained[] }))
  const server = await startNats()
  try {
    const counted = Number(values.idle) > 0 ? await idle(server, Number(values.types)) : null
    for (let round = 0; round < Number(values.rounds); round++)
      for (const [n, { types, workers, rounds }] of drains.entries())
        rounds.push(await drain(server, `drain-${round}-${n}`, { types, workers }))
    others.ours((await processMeter(server.pid).read()).cpuSeconds ?? 0)
    return { machine: machineFacts(), server: server.version, idle: counted, drains }
  } finally {
    await server.remove()
  }
}

const shown = (figure: number): string => Math.round(figure).toLocaleString('en')

const main = async (): Promise<void> => {
  if (values.help) return console.log(HELP)
  const measured = await measure()
  if (values.json) return console.log(JSON.stringify(measured, null, 2))
  console.log(
    `nats-server ${measured.server}, ${shown(tasks)} tasks, medians of ${values.rounds} rounds (least to most)\n`,
  )
  const first = medianOf(measured.drains[0]!.rounds.map(({ perSecond }) => perSecond))
  for (const { types, workers, rounds } of measured.drains) {
    const rates = rounds.map(({ perSecond }) => perSecond)
    const cpu = `${shown(medianOf(rounds.map(({ own }) => own)))} + ${shown(medianOf(rounds.map(({ servers }) => servers)))} µs`
    const range = `(${shown(Math.min(...rates))} to ${shown(Math.max(...rates))})`
    const what = `${types} type${types === 1 ? '' : 's'}, ${workers} worker${workers === 1 ? '' : 's'}`
    const ratio = (medianOf(rates) / first).toFixed(2)
    console.log(
      `  ${what.padEnd(24)} ${shown(medianOf(rates))}/s ${range}, ${ratio} ×; CPU per task ${cpu} of the server`,
    )
  }
  if (measured.idle !== null)
    console.log(
      `\n  one idle worker of ${QUEUES.length} queues × ${values.types} types × ${PRIORITIES.length} priorities: ${shown(measured.idle.messagesAMinute)} messages a minute, ${measured.idle.consumers} consumers`,
    )
}

await main()
