/** The keeper's thread: one connection, opened when the first lease is held, opened anew when it breaks. */
import { hrtime } from 'node:process'
import { parentPort, workerData } from 'node:worker_threads'
import type { Client } from 'pg'
import { LeaseBoard } from '../lease-board.ts'
import { LeaseKeeper } from '../lease-keeper.ts'
import type { Renewal, Renewed } from '../store.ts'
import { renewedOf, renewStatement, renewValues } from './commit.ts'
import { executorOf, loadDriver } from './connection.ts'
import type { FromKeeper, KeeperThreadData, ToKeeper } from './keeper.ts'

const { config, schema, board, leaseTtl, every } = workerData as KeeperThreadData
const port = parentPort!
let connected: Promise<Client> | null = null

const connect = async (): Promise<Client> => {
  const { Client: DriverClient } = await loadDriver()
  const client = new DriverClient({
    ...config,
    application_name: 'holdfast keeper',
    query_timeout: Math.max(1_000, every),
  })
  const forget = (): void => {
    connected = null
  }
  client.on('error', forget)
  client.on('end', forget)
  await client.connect()
  return client
}

const renew = async (renewals: readonly Renewal[]): Promise<readonly Renewed[]> => {
  connected ??= connect()
  const mine = connected
  try {
    const rows = await executorOf(await mine, { prepare: false }).query(
      renewStatement(schema),
      renewValues(renewals, null),
    )
    return renewedOf(renewals, rows)
  } catch (error) {
    // A connection that failed once is not asked again.
    if (connected === mine) connected = null
    mine.then((client) => client.end()).catch(() => {})
    throw error
  }
}

const keeper = new LeaseKeeper(
  {
    board: new LeaseBoard(board),
    leaseTtl,
    every,
    report: (results, renewedAt) => port.postMessage({ results, renewedAt } satisfies FromKeeper),
  },
  {
    renew,
    mono: () => Number(hrtime.bigint()) / 1e6,
    after: (delay, tick) => {
      const timer = setTimeout(tick, delay)
      return () => clearTimeout(timer)
    },
  },
)

port.on('message', (message: ToKeeper) => {
  if (message.kind === 'hold') keeper.hold(message.leases)
  else if (message.kind === 'progress') keeper.progress(message.slot, message.progress)
  else {
    keeper.close()
    port.close()
    connected?.then((client) => client.end()).catch(() => {})
  }
})
