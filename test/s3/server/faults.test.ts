/** Workers killed again and again while the server fails, refuses, does not answer and breaks off: nothing is lost. */
import { afterAll, expect, type TestContext, test } from 'vitest'
import { type Client, connect, isHoldfastError, type SubmitOptions, silentLogger } from '../../../src/index.ts'
import { newId } from '../../../src/runtime/ids.ts'
import { openAt } from '../../crash/address.ts'
import type { Plant } from '../../crash/planted.ts'
import { type Child, cleanUp, folder, pause, start, until } from '../../crash/processes.ts'
import { readRecords, violations } from '../../crash/runs.ts'
import { report, seededChance } from '../../crash/seed.ts'
import { readWitness, readWitnesses, unfinished } from '../../crash/witness.ts'
import { type FaultRates, startFaultProxy } from '../../servers/http-fault-proxy.ts'
import type { S3Target } from '../../servers/s3.ts'
import { volume } from '../../volume.ts'
import { addressOf, freshPrefix } from '../setup.ts'
import { onS3 } from './setup.ts'

cleanUp(afterAll)

const LEASE = 8_000
const RATES: FaultRates = { unavailable: 0.1, conflict: 0.2, lostReply: 0.1, truncated: 0.05, slow: 0.05 }
const TASKS = volume(300, 800)
const KILLS = 8

interface Campaign {
  readonly own: TestContext
  readonly tasks: number
  readonly rates: FaultRates
  /** How long a run takes, in milliseconds, at least and at most. */
  readonly takes: readonly [number, number]
  readonly leaseTtl: number
  readonly plant?: Plant
}

/** What the error of a submit that stays unclear advises: once more with the same id, which may be there already. */
const submitAgain = (client: Client, type: string, input: null, options: SubmitOptions): Promise<boolean> =>
  client.submit(type, input, options).then(
    () => true,
    (error: unknown) => {
      if (isHoldfastError(error, 'ALREADY_EXISTS')) return true
      if (isHoldfastError(error, 'STORE_UNAVAILABLE')) return false
      throw error
    },
  )

/** By lists: counts may be too high for some minutes after a process was killed while it entered ended tasks (decision 18). */
const countListed = async (client: Client): Promise<number> => {
  const ids = new Set<string>()
  let listed = 0
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await client.list({ limit: 1_000, ...(cursor === undefined ? null : { cursor }) })
    for (const { id } of page.tasks) ids.add(id)
    listed += page.tasks.length
    cursor = page.cursor
  }
  expect(ids.size).toBe(listed)
  return listed
}

const campaign = async (target: S3Target, subject: string, plan: Campaign) => {
  const { own, tasks, rates, takes, leaseTtl, plant = 'none' } = plan
  const { seed, between, pick } = seededChance(subject)
  const { endpoint, bucket: _, ...keys } = target
  const proxy = await startFaultProxy({ seed, endpoint, rates, lateness: 1_000, pages: { of: 100, keys } })
  own.onTestFinished(() => proxy.close())
  const prefix = freshPrefix()
  const [straight, faulty] = [addressOf(target, prefix), addressOf({ ...target, endpoint: proxy.endpoint }, prefix)]
  await (await openAt(straight)).close()
  const place = folder()
  const begin = (): Child =>
    start('worker', {
      file: faulty,
      folder: place,
      seed: between(0, 1e9),
      concurrency: 8,
      takes,
      leaseTtl: `${leaseTtl}ms`,
      plant,
    })
  const client = await connect(await openAt(faulty), { logger: silentLogger })
  const workers = Array.from({ length: 4 }, begin)
  const submitted: string[] = []
  const items = Array.from({ length: tasks }, (_, n) => ({
    id: newId(),
    type: 'work',
    input: null,
    ...(n % 10 === 0 ? { idempotencyKey: `key-${n}` } : null),
  }))
  const shared = { maxRetries: null, retryPolicy: { base: '50ms', max: '200ms' } } as const
  const submitting = client.submitMany(items, shared)
  // What the proxy does to this question, too, would only take time.
  const watcher = await connect(await openAt(straight), { logger: silentLogger })
  let kills = 0
  let hasEnded = false
  const killing = (async () => {
    while (!hasEnded && kills < KILLS) {
      await pause(between(300, 1_500))
      const busy = workers.filter((child) => child.isAlive && unfinished(readWitness(place, child.pid)).length > 0)
      if (busy.length === 0) continue
      const victim = pick(busy)
      await victim.kill()
      workers[workers.indexOf(victim)] = begin()
      kills++
    }
  })()
  for (const [n, result] of (await submitting).entries()) {
    const { id, type, input, ...options } = items[n]!
    if (!result.ok)
      await until('the submit is clear', () => submitAgain(client, type, input, { id, ...options }), 60_000)
    submitted.push(id)
  }
  const isOver = async (): Promise<boolean> =>
    (await watcher.count({ status: ['pending', 'running'] }, { cap: 1 })).count === 0
  await until('every task has ended', isOver, 350_000, 500)
  hasEnded = true
  await killing
  for (const child of workers) child.signal('SIGTERM')
  await Promise.all(workers.map((child) => child.end()))
  await client.close()
  const count = await countListed(watcher)
  await watcher.close()
  const records = await readRecords(straight, submitted)
  const wrong = violations({ submitted, records, witness: readWitnesses(place), leaseTtl })
  const reruns = records.filter((record) => record!.attempts > 1).length
  report(
    `${subject}: ${submitted.length} tasks, ${kills} kills, ${reruns} ran again, ${wrong.length} violations; ${JSON.stringify(proxy.faults)}`,
  )
  return { submitted, wrong, count, kills, faults: proxy.faults }
}

onS3('a server that fails in every way at once', (target) => {
  test.concurrent('loses no task of workers that are killed beside it, and makes none twice', {
    timeout: 500_000,
  }, async (own) => {
    const { submitted, wrong, count, kills, faults } = await campaign(target, 's3 faults', {
      own,
      tasks: TASKS,
      rates: RATES,
      takes: [5, 200],
      leaseTtl: LEASE,
    })
    expect(wrong.slice(0, 5)).toEqual([])
    expect(new Set(submitted).size).toBe(TASKS)
    expect(count).toBe(TASKS)
    expect(kills).toBeGreaterThanOrEqual(4)
    for (const fault of ['unavailable', 'conflict', 'lostReply', 'truncated', 'slow'] as const)
      expect(faults[fault]).toBeGreaterThan(10)
  })

  test.concurrent('by workers that take a lease before its end is noticed', { timeout: 200_000 }, async (own) => {
    const { wrong } = await campaign(target, 's3 planted', {
      own,
      tasks: 40,
      rates: {},
      takes: [200, 800],
      leaseTtl: 4_000,
      plant: 'hasty-reclaim',
    })
    expect(wrong.some((sentence) => sentence.includes('lost a lease'))).toBe(true)
  })
})
