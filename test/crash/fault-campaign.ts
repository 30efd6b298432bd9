/** Everything at once: six worker processes and a producer under every fault that their store has, then the checker that users have. */
import { connect, silentLogger } from '../../src/index.ts'
import { openWitness, type Verification, verify } from '../../src/testing/index.ts'
import { openAt } from './address.ts'
import type { FaultPlace, Faults } from './fault-places.ts'
import type { Plant } from './planted.ts'
import { type Child, folder, pause, start, until } from './processes.ts'
import { chance } from './seed.ts'

export interface FaultCampaign {
  readonly place: FaultPlace
  readonly minutes: number
  /** It goes on until there were so many, but no longer than `mostMinutes`. */
  readonly kills: number
  /** Of workers that were paused past their lease. As above. */
  readonly lateWrites: number
  readonly mostMinutes?: number
  readonly seed: number
  /** Tasks that wait at any time. */
  readonly backlog?: number
  readonly plant?: Plant
  /** How it goes, now and then. */
  readonly say?: (line: string) => void
}

export interface FaultOutcome {
  readonly verification: Verification
  readonly faults: Faults
  /** STALE_LEASE, said to a worker that had a result. */
  readonly lateWrites: number
  readonly minutes: number
  /** What the verifier cannot see. */
  readonly violations: readonly string[]
}

const WORKERS = 6
const LEAST_READY = 3
/** A lease is taken after one lease length of unbroken contact: if each worker died before, nobody could take any. In lengths of a lease. */
const ELDEST_LIVES = 4
/** Which queues the nth worker serves. */
const QUEUES: readonly (readonly string[])[] = [
  ['default', 'mail', 'media'],
  ['media', 'default'],
  ['mail', 'default'],
  ['media', 'mail'],
]
const DRAIN = 300_000
/** Also on a machine that is busy with much else. */
const FIRST_START = 300_000

export const faultCampaign = async (plan: FaultCampaign): Promise<FaultOutcome> => {
  const { place, minutes, mostMinutes = 2 * minutes, kills, lateWrites, seed, backlog = 60, plant = 'none', say } = plan
  const dice = chance(seed)
  const { between, pick } = dice
  const logs = folder()
  const witness = openWitness(logs)
  const { address, through, leaseTtl } = place
  const client = await connect(await openAt(address), { logger: silentLogger })
  // A window of a minute: the permits of a short one are over before a slow claim arrives.
  await client.queue('mail').limit({ perGroup: 8, rate: '1800/1m' })
  await client.queue('media').limit({ concurrency: 20 })
  await client.schedules.ensure({ id: 'all', type: 'tick', input: null, every: '2s', overlap: 'allow', catchUp: 'all' })
  await client.schedules.ensure({ id: 'one', type: 'tick', input: 1, every: '1s', overlap: 'skip' })
  await client.schedules.ensure({ id: 'cron', type: 'tick', input: 2, cron: '* * * * *' })

  const everyone: Child[] = []
  let isOver = false
  const failures: string[] = []
  /** Those that end by themselves (poison) are replaced like those that are killed. */
  const bornAt = new Map<Child, number>()
  const begin = (n: number): Child => {
    const queues = QUEUES[n % QUEUES.length]!
    const child = start('fault-worker', { address: through, logs, seed: between(0, 1e9), leaseTtl, queues, plant })
    everyone.push(child)
    bornAt.set(child, performance.now())
    return child
  }
  const produce = (): Child => {
    const child = start('fault-producer', { address: through, logs, seed: between(0, 1e9), backlog })
    everyone.push(child)
    return child
  }
  const workers = Array.from({ length: WORKERS }, (_, n) => begin(n))
  let producer = produce()
  await Promise.all([...workers, producer].map((child) => child.heard('ready', () => true, FIRST_START)))

  const faults: Record<string, number> = {}
  const count = (name: string, times: number): void => {
    faults[name] = (faults[name] ?? 0) + times
  }
  const late = (): number => everyone.reduce((sum, child) => sum + child.said('late').length, 0)
  const begun = performance.now()
  const minutesSince = (): number => (performance.now() - begun) / 60_000
  const isEnough = (): boolean => {
    if (minutesSince() < minutes) return false
    return minutesSince() >= mostMinutes || ((faults['kill -9'] ?? 0) >= kills && late() >= lateWrites)
  }
  const stopped = new Set<Child>()
  const telling = setInterval(async () => {
    const counts = await Promise.all(
      ['pending', 'running', 'completed'].map((status) => client.count({ status })),
    ).catch(() => [])
    const tasks = counts.map(({ count: there }) => there).join('/')
    const alive = workers.filter((worker) => worker.isAlive).length
    say?.(
      `${minutesSince().toFixed(1)} min: ${tasks} tasks, ${alive} workers, ${late()} late, ${JSON.stringify(faults)}`,
    )
  }, 15_000)
  const replace = async (n: number): Promise<void> => {
    const victim = workers[n]!
    workers[n] = begin(n)
    await victim.end()
    witness.down(victim.pid)
  }
  const isReady = (child: Child): boolean => child.isAlive && child.said('ready').length > 0
  const ageOf = (child: Child): number => performance.now() - bornAt.get(child)!
  const isYoungEldest = (child: Child): boolean => {
    const ages = workers.filter(isReady).map(ageOf)
    return ageOf(child) >= Math.max(...ages) && ageOf(child) < ELDEST_LIVES * leaseTtl
  }

  /** One after another; beside each other they would need more processes than there are. */
  const killing = async (): Promise<void> => {
    while (!isEnough()) {
      await pause(between(...place.killEvery))
      const n = between(0, WORKERS - 1)
      const victim = workers[n]!
      if (stopped.has(victim)) continue
      // Somebody must be there to find what the others held.
      if (victim.isAlive && (workers.filter(isReady).length < LEAST_READY || isYoungEldest(victim))) continue
      if (!victim.isAlive) {
        const { code } = await victim.ended
        // As under a supervisor: whoever cannot open the store while it is away ends, and is started again.
        if (code !== null && victim.said('ready').length === 0) count('worker that could not open the store', 1)
        else if (code !== null) failures.push(`a worker ended by itself with ${code}: ${victim.stderr.slice(-500)}`)
        else count('poison', 1)
      } else {
        victim.signal('SIGKILL')
        count('kill -9', 1)
      }
      await replace(n)
      if (between(0, 19) === 0) {
        await producer.kill()
        witness.down(producer.pid)
        count('producer killed', 1)
        producer = produce()
      }
    }
  }
  const pausing = async (): Promise<void> => {
    while (!isEnough()) {
      const victims = new Set([pick(workers), pick(workers)].filter(isReady))
      for (const child of victims) {
        stopped.add(child)
        child.signal('SIGSTOP')
      }
      await pause(leaseTtl * 1.2 + between(0, leaseTtl))
      for (const child of victims) {
        child.signal('SIGCONT')
        count('paused past the lease', 1)
      }
      // It says what became of its results.
      await pause(between(500, 2_000))
      for (const child of victims) stopped.delete(child)
    }
  }
  const breaking = async (): Promise<void> => {
    const kinds = Object.entries(place.faults)
    while (!isEnough()) {
      await pause(between(...place.calm))
      const [name, strike] = pick(kinds)
      count(name, await strike(dice))
    }
  }
  const stepping = async (): Promise<void> => {
    while (!isEnough()) {
      await pause(between(1_000, 4_000))
      const child = pick(workers)
      if (!isReady(child)) continue
      child.signal('SIGUSR2')
      count('wall clock of a worker set by up to 1 h', 1)
    }
  }
  await Promise.all([killing(), pausing(), breaking(), ...(place.stepsClocks ? [stepping()] : [])])
  const took = minutesSince()

  producer.signal('SIGTERM')
  await producer.end()
  for (const { id } of await client.schedules.list()) await client.schedules.pause(id)
  for (const [n, worker] of workers.entries()) if (!worker.isAlive) await replace(n)
  // Poison may still kill some of them.
  const keeping = (async () => {
    while (!isOver) {
      await pause(500)
      for (const [n, worker] of workers.entries()) if (!worker.isAlive && !isOver) await replace(n)
    }
  })()
  const violations: string[] = []
  await until(
    'every task has ended',
    async () => {
      const counts = ['pending', 'running'].map((status) => client.count({ status }))
      // A server may still be on its way back.
      return Promise.all(counts).then(
        (all) => all.every(({ count: left }) => left === 0),
        () => false,
      )
    },
    DRAIN,
    500,
  ).catch((error: Error) => violations.push(`after ${DRAIN / 1_000} s without faults: ${error.message}`))
  isOver = true
  await keeping
  clearInterval(telling)
  for (const worker of workers) worker.signal('SIGTERM')
  const ends = await Promise.all(workers.map((worker) => worker.end()))
  for (const { code, signal } of ends) if (code !== 0) violations.push(`a worker ended with ${code ?? signal}`)
  const verification = await verify(client, {
    witness: [logs],
    drained: true,
    allSubmitted: true,
    deadline: '2m',
    recovery: place.recovery,
  })
  await client.close()
  return {
    verification,
    faults: { ...faults, ...place.counted() },
    lateWrites: late(),
    minutes: took,
    violations: [...violations, ...failures],
  }
}
