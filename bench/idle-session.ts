/** Measures what the looks of a worker cost while another session is idle in a transaction: no index entry that dies meanwhile can be removed. */
import { parseArgs } from 'node:util'
import pg from 'pg'
import { startPostgres } from '../test/servers/postgres.ts'
import { percentileOf } from './median.ts'
import { runCommand, wholeNumber } from './options.ts'
import { pace } from './pace.ts'
import { loadHoldfast } from './systems/holdfast.ts'

const HELP = `Submits and runs tasks at a steady rate on PostgreSQL, at first alone, then beside a session that is idle in a transaction.
Prints how long the statements of the worker's looks took, from the client, and how long tasks waited.

  node bench/idle-session.ts [options]       uses the existing dist, starts a temporary server

  --rate N         tasks a second (default 470)
  --seconds N      beside the idle session (default 180)
  --every N        seconds in a line of the result (default 30)
  --help           print this help
`

const TICK = 20
/** The statements of a look: the claim, the question whether anything is due, what is overdue. */
const LOOK = /claim_in_order|as materialized \(select|lease_expires_at <= /

const main = async (): Promise<void> => {
  const { values } = parseArgs({
    options: {
      rate: { type: 'string', default: '470' },
      seconds: { type: 'string', default: '180' },
      every: { type: 'string', default: '30' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return void process.stdout.write(HELP)
  const rate = wholeNumber(values.rate, '--rate')
  const [seconds, every] = [wholeNumber(values.seconds, '--seconds'), wholeNumber(values.every, '--every')]
  const server = await startPostgres()
  try {
    await measure(server.url, { rate, seconds, every })
  } finally {
    await server.remove()
  }
}

const measure = async (
  url: string,
  { rate, seconds, every }: Readonly<Record<'rate' | 'seconds' | 'every', number>>,
): Promise<void> => {
  const { connect, silentLogger } = await loadHoldfast()
  await using producer = await connect(url, { create: true, logger: silentLogger })
  let [looks, waits]: [number[], number[]] = [[], []]
  const pool = new pg.Pool({ connectionString: url, max: 6 })
  pool.on('connect', (connection) => timed(connection, (took) => looks.push(took)))
  const client = await connect(url, { logger: silentLogger, postgres: { pool } })
  const worker = client
    .worker({ concurrency: 50 })
    .handle('work', (input) => void waits.push(Date.now() - (input as { readonly at: number }).at))
  worker.start()
  const stop = submitting(rate, (n) =>
    producer.submitMany(Array.from({ length: n }, () => ({ type: 'work', input: { at: Date.now() } }))),
  )
  const line = async (name: string): Promise<void> => {
    ;[looks, waits] = [[], []]
    await new Promise((done) => setTimeout(done, every * 1_000))
    process.stdout.write(`${name}: ${spread(looks)} (${looks.length} statements); tasks waited ${spread(waits)}\n`)
  }
  await line('warm-up')
  await line('alone')
  const idle = new pg.Client({ connectionString: url, application_name: 'forgotten' })
  await idle.connect()
  await idle.query('begin isolation level repeatable read')
  await idle.query('select 1 from pg_class limit 1')
  for (let passed = every; passed <= seconds; passed += every) await line(`${passed} s beside the idle session`)
  for (const { check, verdict, found } of await client.examine())
    if (check === 'transactions') process.stdout.write(`doctor: ${verdict}: ${found}\n`)
  await idle.end()
  await stop()
  await client.close()
  await pool.end()
}

/** Reports how long each statement of a look took. */
const timed = (connection: pg.PoolClient, report: (took: number) => void): void => {
  const ask = connection.query.bind(connection) as (...given: unknown[]) => unknown
  const asking = (...given: unknown[]): unknown => {
    const [first] = given
    const text = typeof first === 'string' ? first : (first as { readonly text?: string }).text
    const answer = ask(...given)
    if (text === undefined || !LOOK.test(text) || !(answer instanceof Promise)) return answer
    const begun = performance.now()
    return answer.finally(() => report(performance.now() - begun))
  }
  Object.assign(connection, { query: asking })
}

const submitting = (rate: number, submit: (n: number) => Promise<unknown>): (() => Promise<void>) => {
  const dueNow = pace(rate)
  const working = new Set<Promise<unknown>>()
  const timer = setInterval(() => {
    const due = dueNow()
    if (due === 0) return
    const done = submit(due).finally(() => working.delete(done))
    working.add(done)
  }, TICK)
  return async () => {
    clearInterval(timer)
    await Promise.all(working)
  }
}

const spread = (samples: readonly number[]): string => {
  const at = (share: number): string => percentileOf(samples, share).toFixed(1)
  return samples.length === 0 ? 'none' : `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, at most ${at(1)} ms`
}

await runCommand(main)
