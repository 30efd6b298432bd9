/** Servers that are killed under load, with workers that are killed beside them: nothing acknowledged is lost. Side by side: much of it is waiting. */
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { afterAll, expect, type TestContext, test } from 'vitest'
import { cleanUp, pause, until } from '../crash/processes.ts'
import { percentile, report } from '../crash/seed.ts'
import { startNats, startNatsCluster } from '../servers/nats.ts'
import { campaign, type Outcome } from './campaign.ts'
import { onNats } from './setup.ts'

cleanUp(afterAll)

const reportOutcome = (what: string, { acknowledged, refused, killed, wrong, recoveries }: Outcome): void => {
  const [p50, max] = [percentile(recoveries, 0.5), Math.max(...recoveries)]
  report(
    `${what}: ${recoveries.length} kills of a server, ${killed} of workers, ${acknowledged} tasks acknowledged, ${refused} refused, ${wrong.length} violations`,
  )
  report(`${what}: work goes on p50 ${p50.toFixed(0)} ms, max ${max.toFixed(0)} ms after the server was back`)
}

/** One server, killed and started again in each round. */
const killing = async (own: TestContext, outage: number) => {
  const server = await startNats()
  own.onTestFinished(() => server.remove())
  const disturb = async (): Promise<void> => {
    await server.kill()
    await pause(outage)
    await server.start()
  }
  return { own, address: `${server.url}/load`, disturb }
}

interface Lead {
  readonly leader: string | undefined
  /** The others have all that it has. */
  readonly isWhole: boolean
}

/** The server that leads the bucket's stream, if one answers. */
const leadOf = async (url: string, stream: string): Promise<Lead> => {
  try {
    const nc = await connect({ servers: url.replace('nats://', '').split(',') })
    try {
      const { cluster } = await (await jetstreamManager(nc)).streams.info(stream)
      const others = cluster?.replicas ?? []
      const isWhole = others.length === 2 && others.every(({ current, offline }) => current && !offline)
      return { leader: cluster?.leader, isWhole }
    } finally {
      await nc.close()
    }
  } catch {
    return { leader: undefined, isWhole: false }
  }
}

onNats('nats-server killed with kill -9 under load', () => {
  test.concurrent('twenty times, beside four worker processes killed at random, loses nothing', {
    timeout: 300_000,
  }, async (own) => {
    const outcome = await campaign({ ...(await killing(own, 100)), rounds: 20, seed: 20, killWorkers: true })
    reportOutcome('one server', outcome)
    expect(outcome.wrong.slice(0, 5)).toEqual([])
    expect(outcome.acknowledged).toBeGreaterThan(500)
  })

  test.concurrent('shows a store that acknowledges what it could not write', { timeout: 120_000 }, async (own) => {
    // Longer than the store's own patience.
    const outcome = await campaign({ ...(await killing(own, 18_000)), rounds: 1, seed: 2, plant: 'ignore-full' })
    expect(outcome.wrong.some((sentence) => sentence.includes('is lost'))).toBe(true)
  })

  test.concurrent('ten times, always the leader of three with three replicas, loses nothing', {
    timeout: 300_000,
  }, async (own) => {
    const cluster = await startNatsCluster()
    own.onTestFinished(() => cluster.remove())
    const disturb = async (): Promise<void> => {
      let leader: string | undefined
      // The one of the round before must be back, or two of three would be away.
      await until('there is a leader of three', async () => {
        const lead = await leadOf(cluster.url, 'KV_load')
        leader = lead.leader
        return leader !== undefined && lead.isWhole
      })
      const server = cluster.servers.find(({ url }) => `n${new URL(url).port}` === leader)!
      await server.kill()
      await until('another one leads', async () => {
        const lead = await leadOf(cluster.url, 'KV_load')
        return lead.leader !== undefined && lead.leader !== leader
      })
      await server.start()
    }
    const outcome = await campaign({ own, address: `${cluster.url}/load?replicas=3`, rounds: 10, seed: 10, disturb })
    reportOutcome('three servers', outcome)
    expect(outcome.wrong.slice(0, 5)).toEqual([])
    expect(outcome.acknowledged).toBeGreaterThan(300)
  })
})
