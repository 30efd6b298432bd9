/** The keeper's thread: one connection, opened when the first lease is held, opened anew when it breaks. */
import { hrtime } from 'node:process'
import { parentPort, workerData } from 'node:worker_threads'
import type { Client } from 'pg'
import { LeaseBoard } from '../lease-board.ts'
import { LeaseKeeper } from '../lease-keeper.ts'
import type { Renewal, Renewed } from '../store.ts'
import { connectionConfig, executorOf, loadDriver, type Manners, prepareSession } from './connection.ts'
import type { FromKeeper, KeeperThreadData, ToKeeper } from './keeper.ts'
import { renewLeases } from './renew.ts'

const { config, schema, board, leaseTtl, every, manners: usual } = workerData as KeeperThreadData
/** A round that is not over when the next one is due has failed: better a new connection than a lost lease. */
const deadline = Math.max(500, Math.min(every, usual.deadlines.query))
const manners: Manners = { ...usual, deadlines: { connect: deadline, query: deadline } }
const port = parentPort!
let connected: Promise<Client> | null = null
// Loading it takes longer than connecting.
loadDriver().catch(() => {})

/** The connection, a new one if there is none. */
const connect = (): Promise<Client> => {
  if (connected !== null) return connected
  // Only itself: by the time that it ends, there may be another.
  const forget = (): void => {
    if (connected === mine) connected = null
  }
  const mine = open(forget)
  connected = mine
  return mine
}

const open = async (forget: () => void): Promise<Client> => {
  const { Client: DriverClient } = await loadDriver()
  const client = new DriverClient(connectionConfig(config, 'holdfast keeper', manners))
  client.on('error', forget)
  client.on('end', forget)
  try {
    await client.connect()
    await prepareSession(client, manners)
    return client
  } catch (error) {
    client.end().catch(() => {})
    throw error
  }
}

const renew = async (renewals: readonly Renewal[]): Promise<readonly Renewed[]> => {
  const mine = connect()
  try {
    return await renewLeases(executorOf(await mine, manners), schema, renewals, null)
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
  if (message.kind === 'hold') {
    // Now, so that the first round, a third of the lease from here, does not have to wait for it.
    connect().catch(() => {})
    keeper.holdPacked(message.leases)
  } else if (message.kind === 'progress') keeper.progress(message.slot, message.progress)
  else {
    keeper.close()
    port.close()
    connected?.then((client) => client.end()).catch(() => {})
  }
})
