/** The keeper's thread: one connection, opened when the first lease is held, opened again when it breaks. */
import type { Client } from 'pg'
import { keeperTold, keepOnThread } from '../threads/threaded-keeper.ts'
import { readClock } from './claim/claimer.ts'
import {
  connectionConfig,
  type Executor,
  executorOf,
  loadDriver,
  type Manners,
  type PgRow,
  prepareSession,
  type Value,
} from './connection.ts'
import type { KeeperPlace } from './keeper.ts'
import { askPassword } from './password-channel.ts'
import { getTasks } from './read/query.ts'
import { Committer } from './write/commit.ts'
import { leasedBy, renewLeases } from './write/renew.ts'

const { place, every } = keeperTold<KeeperPlace>()
const { config, schema, manners: usual, passwords } = place
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
  const from = passwords === null ? config : { ...config, password: () => askPassword(passwords, deadline) }
  const client = new DriverClient(connectionConfig(from, 'holdfast keeper', manners))
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

const queryNow = async (text: string, values: readonly Value[]): Promise<PgRow[]> => {
  const mine = connect()
  try {
    return await executorOf(await mine, manners).query(text, values)
  } catch (error) {
    // A connection that failed once is not asked again.
    if (connected === mine) connected = null
    mine.then((client) => client.end()).catch(() => {})
    throw error
  }
}

let last: Promise<unknown> = Promise.resolve()

/** One after the other: a connection takes one statement at a time, and the driver warns about a second one. */
const executor: Pick<Executor, 'query'> = {
  query: (text, values) => {
    const mine = last.then(() => queryNow(text, values))
    last = mine.catch(() => {})
    return mine
  },
}

const committer = new Committer(executor, schema)

keepOnThread({
  renew: (renewals) => renewLeases(executor, schema, renewals, null),
  leasedBy: (workerId, op) => leasedBy(executor, schema, workerId, op),
  tasks: {
    now: () => readClock(executor),
    get: (ids) => getTasks(executor, schema, ids),
    commit: (changes) => committer.commit(changes),
  },
  prepare: () => void connect().catch(() => {}),
  close: () => void connected?.then((client) => client.end()).catch(() => {}),
})
