/** LISTEN and NOTIFY as a hint: one connection listens; notices.ts decides when to notify. */
import type { Client, ClientConfig } from 'pg'
import type { WakeListener } from '../../store.ts'
import { WakeListeners } from '../../wake-listeners.ts'
import { type Connections, loadDriver } from '../connection.ts'
import { type Notice, Notices } from './notices.ts'

/** How often to query the server: a connection that only listens does not notice that the server is gone. */
const ASK_EVERY = 20_000
const FIRST_WAIT = 200
const LONGEST_WAIT = 10_000

/** Cast to text, because some clients cannot read a result of type void. */
const NOTIFY = 'select pg_notify($1, queue)::text from unnest($2::text[]) as q(queue)'

export class Wake {
  readonly #channel: string
  /** null: do not listen (PgBouncer in transaction mode). Then only polling finds work of other processes. */
  readonly #config: ClientConfig | null
  readonly #listeners = new WakeListeners((isOn) => (isOn ? void this.#listen() : this.#hangUp()))
  readonly #notices: Notices
  #client: Client | null = null
  #retry: NodeJS.Timeout | null = null
  #asking: NodeJS.Timeout | null = null
  #failures = 0
  #closed = false

  constructor(connections: Connections, channel: string, config: ClientConfig | null) {
    this.#channel = channel
    this.#config = config
    this.#notices = new Notices((queues) => connections.query(NOTIFY, [channel, queues]))
  }

  get channel(): string {
    return this.#channel
  }

  on(listener: WakeListener): () => void {
    return this.#listeners.add(listener)
  }

  /** For a write that makes tasks pending, which may carry the notice to other processes. Workers of this process wake when the write has ended. */
  begin(queues: readonly string[]): Notice {
    const notice = this.#notices.begin(queues)
    return {
      queues: notice.queues,
      end: () => {
        this.#listeners.notify(queues)
        notice.end()
      },
    }
  }

  /** Wakes this process at once, and the others with NOTIFY. */
  ring(queues: readonly string[]): void {
    this.#listeners.notify(queues)
    this.#notices.notify(queues)
  }

  async #listen(): Promise<void> {
    if (this.#config === null || this.#client !== null) return
    const { Client: DriverClient } = await loadDriver()
    // Meanwhile the last listener may have left, or another call may have connected.
    if (this.#client !== null || this.#closed || this.#listeners.size === 0) return
    const client = new DriverClient(this.#config)
    this.#client = client
    client.on('error', () => this.#lost(client))
    client.on('end', () => this.#lost(client))
    client.on('notification', ({ payload }) =>
      this.#listeners.notify(payload === undefined || payload === '' ? null : [payload]),
    )
    try {
      await client.connect()
      await client.query(`listen "${this.#channel}"`)
      // Notifications were lost during the outage: any queue may have work.
      if (this.#failures > 0) this.#listeners.notify(null)
      this.#failures = 0
      this.#askNowAndThen(client)
    } catch {
      this.#lost(client)
    }
  }

  #askNowAndThen(client: Client): void {
    if (this.#client !== client) return
    this.#asking = setTimeout(() => {
      client.query('select 1').then(
        () => this.#askNowAndThen(client),
        () => this.#lost(client),
      )
    }, ASK_EVERY)
    this.#asking.unref()
  }

  #lost(client: Client | null): void {
    if (this.#client !== client || client === null) return
    this.#client = null
    if (this.#asking) clearTimeout(this.#asking)
    client.end().catch(() => {})
    if (this.#closed || this.#listeners.size === 0 || this.#retry !== null) return
    const wait = Math.min(FIRST_WAIT * 2 ** this.#failures++, LONGEST_WAIT) * (0.5 + Math.random())
    this.#retry = setTimeout(() => {
      this.#retry = null
      void this.#listen()
    }, wait)
    this.#retry.unref()
  }

  #hangUp(): void {
    const client = this.#client
    this.#client = null
    if (this.#asking) clearTimeout(this.#asking)
    if (this.#retry) clearTimeout(this.#retry)
    this.#retry = null
    client?.end().catch(() => {})
  }

  close(): void {
    this.#closed = true
    this.#listeners.clear()
    this.#notices.close()
    this.#hangUp()
  }
}
