/** Takes whatever it may: each way on a client of its own. It connects when it can, also while the store is away. */
import { setTimeout as pause } from 'node:timers/promises'
import { type Client, connect, silentLogger } from '../../../src/index.ts'
import { Contact } from '../../../src/runtime/contact.ts'
import { planOf, say } from './child.ts'

export interface TakerPlan {
  readonly url: string
  readonly ways: readonly Way[]
  readonly leaseTtl: string
  /** The planted bug: takes lapsed leases however short its contact was. */
  readonly isHasty?: boolean
}

export type Way = 'worker' | 'claimNext' | 'monitor'

const { url, ways, leaseTtl, isHasty = false } = planOf<TakerPlan>()
if (isHasty) Contact.prototype.hasLasted = () => true

const connected = async (): Promise<Client> => {
  for (;;) {
    try {
      return await connect(url, { logger: silentLogger })
    } catch {
      await pause(50)
    }
  }
}

const claimOn = async (client: Client): Promise<never> => {
  for (;;) {
    await client.claimNext({ workerId: `taker-${process.pid}`, leaseTtl }).catch(() => null)
    await pause(50)
  }
}

const take: Readonly<Record<Way, (client: Client) => unknown>> = {
  worker: (client) =>
    client
      .worker({ leaseTtl, concurrency: 100 })
      .handle('work', () => new Promise(() => {}))
      .start(),
  claimNext: claimOn,
  monitor: (client) => client.monitor().start(),
}

await Promise.all(ways.map(async (way) => void take[way](await connected())))
say('ready')
setInterval(() => {}, 60_000)
