/** The keeper's thread: one connection, opened when the first lease is held, opened anew when it breaks. */
import type { Client } from 'pg'
import type { Renewal, Renewed } from '../store.ts'
import { keeperTold, keepOnThread } from '../threaded-keeper.ts'
import { connectionConfig, executorOf, loadDriver, type Manners, prepareSession } from './connection.ts'
import type { KeeperPlace } from './keeper.ts'
import { renewLeases } from './renew.ts'

const { place, every } = keeperTold<KeeperPlace>()
const { config, schema, manners: usual } = place
/** A round that is not over when the next one is due has failed: better a new connection than a lost lease. */
const deadline = Math.max(500, Math.min(every, usual.deadlines.query))
const manners: Manners = { ...usual, deadlines: { connect: deadline, query: deadline } }
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

const renewNow = async (renewals: readonly Renewal[]): Promise<readonly Renewed[]> => {
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

let last: Promise<unknown> = Promise.resolve()

/** One round after the other: a connection takes one statement at a time, and the driver warns whoever gives it two. */
const renew = (renewals: readonly Renewal[]): Promise<readonly Renewed[]> => {
  const mine = last.then(() => renewNow(renewals))
  last = mine.catch(() => {})
  return mine
}

keepOnThread({
  renew,
  prepare: () => void connect().catch(() => {}),
  close: () => void connected?.then((client) => client.end()).catch(() => {}),
})
