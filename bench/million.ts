/** The dashboard on a million tasks: how long each page takes, and what viewers cost the claims. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startPostgres } from '../test/servers/postgres.ts'
import { onServer } from './database.ts'
import { type Drains, measureClaims, metersOf } from './million/claim-rates.ts'
import { fill } from './million/fill.ts'
import { measurePages, pagesAt } from './million/page-times.ts'
import { hangUp, startServer } from './million/server.ts'

const HELP = `Fills a store with a million tasks, starts 'holdfast serve' on it, and asks for what each page of the dashboard asks for.
Then runs no-op tasks through a worker, without viewers and with 5, taking turns.

  node bench/million.ts [options]

  --store NAME   sqlite, postgres (starts a temporary server), or all (the default)
  --tasks N      tasks in the store (default 1000000)
  --times N      how often each page is asked for (default 50)
  --drain N      no-op tasks in one drain (default 300000)
  --runs N       drains without and with viewers (default 3; 0: none)
  --page TEXT    only pages whose name contains it
  --help         this
`

interface Options extends Drains {
  readonly tasks: number
  readonly times: number
  readonly page: string
}

interface Ground {
  readonly address: string
  /** Autovacuum would have done this in the course of the day. */
  settle(): Promise<void>
  remove(): Promise<void>
}

const grounds: Readonly<Record<string, () => Promise<Ground>>> = {
  sqlite: async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-million-'))
    return {
      address: `sqlite:${join(folder, 'q.db')}`,
      settle: async () => {},
      remove: async () => rmSync(folder, { recursive: true, force: true }),
    }
  },
  postgres: async () => {
    const server = await startPostgres()
    return {
      address: server.url,
      settle: () => onServer(server.url, async (client) => void (await client.query('vacuum analyze'))),
      remove: () => server.remove(),
    }
  },
}

const main = async (): Promise<void> => {
  const { values } = parseArgs({
    options: {
      store: { type: 'string', default: 'all' },
      tasks: { type: 'string', default: '1000000' },
      times: { type: 'string', default: '50' },
      drain: { type: 'string', default: '300000' },
      runs: { type: 'string', default: '3' },
      page: { type: 'string', default: '' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(HELP)
  const stores = Object.keys(grounds).filter((name) => values.store === 'all' || values.store === name)
  if (stores.length === 0) throw new Error(`--store must be ${Object.keys(grounds).join(', ')} or all`)
  const options: Options = {
    tasks: wholeNumber(values.tasks, '--tasks'),
    times: wholeNumber(values.times, '--times'),
    drain: wholeNumber(values.drain, '--drain'),
    runs: wholeNumber(values.runs, '--runs'),
    page: values.page,
  }
  for (const store of stores) await measure(store, options)
}

const measure = async (store: string, options: Options): Promise<void> => {
  const { tasks } = options
  const ground = await grounds[store]!()
  try {
    const began = Date.now()
    await fill(ground.address, tasks, began)
    await ground.settle()
    console.log(
      `\n${store}: ${tasks.toLocaleString('en')} tasks, made in ${Math.round((Date.now() - began) / 1_000)} s\n`,
    )
    const server = await startServer(ground.address)
    try {
      const pages = await pagesAt(server.url, tasks, began)
      const meters = await metersOf(ground.address, server)
      await measurePages(
        server.url,
        pages.filter(({ name }) => name.includes(options.page)),
        options.times,
        async () => {
          const readings = await Promise.all(meters.map((meter) => meter.read()))
          return readings.reduce((sum, { cpuSeconds }) => sum + (cpuSeconds ?? 0), 0)
        },
      )
      await Promise.all(meters.map((meter) => meter.close()))
      if (options.runs > 0) await measureClaims(ground.address, server, pages, options)
    } finally {
      hangUp()
      await server.stop()
    }
  } finally {
    await ground.remove()
  }
}

const wholeNumber = (text: string, option: string): number => {
  const value = Number(text)
  if (Number.isInteger(value) && value >= 0) return value
  throw new Error(`${option} must be a whole number, not '${text}'`)
}

try {
  await main()
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
