/** The keeper's thread. It has one connection, opened with the first lease and reopened when it breaks. */
import type { Client } from 'pg'
import { keeperTold, keepOnThread } from '../threads/threaded-keeper.ts'
import { readClock } from './claim/claimer.ts'
import {
  type ConnectionPolicy,
  connectionConfig,
  type Executor,
  executorOf,
  loadDriver,
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
const { config, schema, policy: usual, passwords } = place
/** A round that has not ended when the next one is due has failed: a new connection is better than a lost lease. */
const deadline = Math.max(500, Math.min(every, usual.deadlines.query))
const policy: ConnectionPolicy = { ...usual, deadlines: { connect: deadline, query: deadline } }
let connected: Promise<Client> | null = null
// Loaded early, because loading takes longer than connecting.
loadDriver().catch(() => {})

/** Returns the connection, or opens one. */
const connect = (): Promise<Client> => {
  if (connected !== null) return connected
  // Forget only this connection: when it ends, there may be a newer one.
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
  const client = new DriverClient(connectionConfig(from, 'holdfast keeper', policy))
  client.on('error', forget)
  client.on('end', forget)
  try {
    await client.connect()
    await prepareSession(client, policy)
    return client
  } catch (error) {
    client.end().catch(() => {})
    throw error
  }
}

const queryNow = async (text: string, values: readonly Value[]): Promise<PgRow[]> => {
  const mine = connect()
  try {
    return await executorOf(await mine, policy).query(text, values)
  } catch (error) {
    // A connection that failed once is not used again.
    if (connected === mine) connected = null
    mine.then((client) => client.end()).catch(() => {})
    throw error
  }
}

let last: Promise<unknown> = Promise.resolve()

/** Runs statements one after another: a connection takes one at a time, and the driver warns about a second. */
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
