/** Servers that are killed under load, with workers that are killed beside them: nothing acknowledged is lost. Side by side: much of it is waiting. */
import { afterAll, expect, type TestContext, test } from 'vitest'
import { cleanUp, pause } from '../crash/processes.ts'
import { percentile, report } from '../crash/seed.ts'
import { startNats, startNatsCluster } from '../servers/nats.ts'
import { volume } from '../volume.ts'
import { campaign, type Outcome } from './campaign.ts'
import { killLeader } from './lead.ts'
import { onNats } from './setup.ts'

cleanUp(afterAll)

const ROUNDS = volume(8, 20)
const LEADERS = volume(4, 10)

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

onNats('nats-server killed with kill -9 under load', () => {
  test.concurrent(`${ROUNDS} times, beside four worker processes killed at random, loses nothing`, {
    timeout: 300_000,
  }, async (own) => {
    const outcome = await campaign({ ...(await killing(own, 100)), rounds: ROUNDS, seed: 20, killWorkers: true })
    reportOutcome('one server', outcome)
    expect(outcome.wrong.slice(0, 5)).toEqual([])
    expect(outcome.acknowledged).toBeGreaterThan(25 * ROUNDS)
  })

  test.concurrent('shows a store that acknowledges what it could not write', { timeout: 120_000 }, async (own) => {
    // Longer than the store's own patience.
    const outcome = await campaign({ ...(await killing(own, 18_000)), rounds: 1, seed: 2, plant: 'ignore-full' })
    expect(outcome.wrong.some((sentence) => sentence.includes('is lost'))).toBe(true)
  })

  test.concurrent(`${LEADERS} times, always the leader of three with three replicas, loses nothing`, {
    timeout: 300_000,
  }, async (own) => {
    const cluster = await startNatsCluster()
    own.onTestFinished(() => cluster.remove())
    const disturb = async (): Promise<void> => {
      const server = await killLeader(cluster, 'KV_load')
      await server.start()
    }
    const outcome = await campaign({
      own,
      address: `${cluster.url}/load?replicas=3`,
      rounds: LEADERS,
      seed: 10,
      disturb,
    })
    reportOutcome('three servers', outcome)
    expect(outcome.wrong.slice(0, 5)).toEqual([])
    expect(outcome.acknowledged).toBeGreaterThan(30 * LEADERS)
  })
})
