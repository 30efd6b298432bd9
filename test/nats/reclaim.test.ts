/**
 * Worker processes killed with kill -9 beside a flow of delayed, sleeping and expiring tasks: each task that one of them held is run again
 * by another. `HOLDFAST_NATS_RECLAIMS=100` reclaims this many, each within its lease and one second; without it a few, with
 * more time for a machine that does other things.
 */
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { type Client, connect, silentLogger } from '../../src/index.ts'
import { type Child, cleanUp, pause, start, until } from '../crash/processes.ts'
import { percentile, report, seededChance } from '../crash/seed.ts'
import { startNats } from '../servers/nats.ts'
import { onNats } from './setup.ts'

cleanUp(afterAll)

const asked = process.env['HOLDFAST_NATS_RECLAIMS']
const RECLAIMS = Number(asked ?? 8)
const LEASE = 5_000
const LATENESS = asked === undefined ? 5_000 : 1_000
const PROCESSES = 5
const HELD_AT_ONCE = 4

/** Until stopped: tasks for a moment later, and tasks that expire before a worker takes them. */
const flow = (client: Client): (() => Promise<void>) => {
  let isOver = false
  const flowing = (async () => {
    for (let n = 0; !isOver; n++) {
      await client.submitMany([
        { type: 'quick', input: null, delay: { milliseconds: 100 + (n % 15) * 100 } },
        { type: 'quick', input: null, ttl: '30s' },
        { type: 'unhandled', input: null, ttl: { milliseconds: 200 + (n % 10) * 100 } },
      ])
      await pause(100)
    }
  })()
  return async () => {
    isOver = true
    await flowing
  }
}

onNats('a task of a worker process that was killed', () => {
  test('is run again when its lease has lapsed, whatever flows beside it', { timeout: 1_200_000 }, async () => {
    const server = await startNats()
    onTestFinished(() => server.remove())
    const address = `${server.url}/reclaim`
    const client = await connect(address, { create: true, logger: silentLogger })
    onTestFinished(() => client.close())
    const dice = seededChance('reclaim')
    const begin = async (): Promise<Child> => {
      const child = start('holder', { file: address, concurrency: 20 })
      await child.heard('ready')
      return child
    }
    const workers = await Promise.all(Array.from({ length: PROCESSES }, begin))
    await client.submitMany(Array.from({ length: 20 }, (_, n) => ({ type: 'nap', input: n })))
    const stopFlow = flow(client)
    const everyone = [...workers]
    const runOf = (task: string, attempt: number) =>
      everyone
        .flatMap((child) => child.said('holds'))
        .find((line) => line['task'] === task && line['attempt'] === attempt)

    const times: number[] = []
    while (times.length < RECLAIMS) {
      const results = await client.submitMany(
        Array.from({ length: Math.min(HELD_AT_ONCE, RECLAIMS - times.length) }, () => ({
          type: 'hold',
          input: null,
          timeout: null,
          retryPolicy: { base: '1ms', max: '1ms', jitter: 'none' as const },
        })),
      )
      const ids = results.map((result) => (result.ok ? result.task.id : ''))
      await until('all are held', () => ids.every((id) => runOf(id, 1) !== undefined))
      await pause(dice.between(0, 3_000))
      const isHolder = (child: Child): boolean =>
        child.said('holds').some((line) => ids.includes(line['task'] as string))
      const victims = workers.filter(isHolder)
      // One process always remains to find them. What it holds itself is killed with the next.
      const killed = victims.length === PROCESSES ? victims.slice(1) : victims
      const killedAt = new Map<string, number>()
      for (const victim of killed) {
        for (const line of victim.said('holds')) killedAt.set(line['task'] as string, Date.now())
        victim.signal('SIGKILL')
        const replacement = start('holder', { file: address, concurrency: 20 })
        everyone.push(replacement)
        workers[workers.indexOf(victim)] = replacement
      }
      await until('all have been run again', () => ids.every((id) => runOf(id, 2) !== undefined), 60_000)
      for (const id of ids) times.push((runOf(id, 2)!['at'] as number) - killedAt.get(id)!)
    }
    await stopFlow()
    const late = times.filter((time) => time > LEASE + LATENESS)
    const shown = [0.5, 1].map((share) => percentile(times, share).toFixed(0))
    report(
      `nats: ${times.length - late.length} of ${times.length} reclaimed in time; p50 ${shown[0]} ms, max ${shown[1]} ms after kill -9`,
    )
    expect(late).toEqual([])
  })
})
