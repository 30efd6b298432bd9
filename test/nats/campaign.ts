/** Load by four worker processes and a producer, disturbed again and again; afterwards every acknowledged task is accounted for. */
import type { TestContext } from 'vitest'
import { isTerminal } from '../../src/core/task.ts'
import { connect, silentLogger } from '../../src/index.ts'
import { openAt } from '../crash/address.ts'
import { type Plant, planted } from '../crash/planted.ts'
import { type Child, folder, pause, start, until } from '../crash/processes.ts'
import { readRecords, violations } from '../crash/runs.ts'
import { chance } from '../crash/seed.ts'
import { readWitnesses } from '../crash/witness.ts'

export interface Campaign {
  readonly own: Pick<TestContext, 'onTestFinished'>
  /** With bucket. */
  readonly address: string
  readonly rounds: number
  readonly seed: number
  /** What happens to the server in each round. */
  disturb(): Promise<void>
  /** Also kill -9 of a worker process in each round. */
  readonly killWorkers?: boolean
  /** In the process that submits. */
  readonly plant?: Plant
}

export interface Outcome {
  readonly acknowledged: number
  readonly refused: number
  readonly killed: number
  readonly wrong: readonly string[]
  /** In ms, from the end of each disturbance until a task was done again. */
  readonly recoveries: readonly number[]
}

const PROCESSES = 4
const LEASE = 5_000
const WAITING = 300
const BATCH = 50

const endsIn = (place: string): number => readWitnesses(place).filter(({ what }) => what === 'end').length

export const campaign = async (plan: Campaign): Promise<Outcome> => {
  const { own, address, rounds, seed, plant = 'none', killWorkers = false } = plan
  const place = folder()
  const dice = chance(seed)
  const client = await connect(planted(await openAt(address), plant), { logger: silentLogger })
  own.onTestFinished(() => client.close())
  let started = 0
  const begin = async (): Promise<Child> => {
    const settings = { concurrency: 4, takes: [10, 60], leaseTtl: `${LEASE}ms` }
    const child = start('worker', { file: address, folder: place, seed: seed + started++, ...settings })
    await child.heard('ready')
    return child
  }
  const workers = await Promise.all(Array.from({ length: PROCESSES }, begin))

  const acknowledged: string[] = []
  let refused = 0
  let isOver = false
  const produce = async (): Promise<void> => {
    while (!isOver) {
      await pause(20)
      if (acknowledged.length - endsIn(place) >= WAITING) continue
      // While the server is away too: what it never heard of must not be acknowledged.
      const tasks = Array.from({ length: BATCH }, () => ({ type: 'work', input: null }))
      const results = await client.submitMany(tasks).catch(() => [])
      for (const result of results) {
        if (result.ok) acknowledged.push(result.task.id)
        else refused++
      }
    }
  }
  const producing = produce()

  const recoveries: number[] = []
  let killed = 0
  try {
    for (let round = 0; round < rounds; round++) {
      const before = endsIn(place)
      await until('the workers are at work', () => endsIn(place) > before + 20)
      if (killWorkers) {
        const victim = dice.between(0, PROCESSES - 1)
        await workers[victim]!.kill()
        killed++
        workers[victim] = await begin()
      }
      await plan.disturb()
      const begun = performance.now()
      const then = endsIn(place)
      await until('a task is done again', () => endsIn(place) > then, 60_000)
      recoveries.push(performance.now() - begun)
    }
  } finally {
    isOver = true
    await producing
  }
  const alive = workers.filter((worker) => worker.isAlive).length
  const unfinished = async (): Promise<string[]> => {
    const records = (await readRecords(address, acknowledged)).filter((record) => record !== null)
    return records.filter(({ status }) => !isTerminal(status)).map((record) => JSON.stringify(record))
  }
  await until('every task has ended', async () => (await unfinished()).length === 0, 60_000, 500).catch(
    async (error) => {
      throw new Error(`${error}: ${(await unfinished()).slice(0, 3).join('\n')}`)
    },
  )
  for (const worker of workers) worker.signal('SIGTERM')
  const ends = await Promise.all(workers.map((worker) => worker.end()))
  const records = await readRecords(address, acknowledged)
  // What was submitted with a reply that never came may run, too.
  const known = new Set(acknowledged)
  const witness = readWitnesses(place).filter(({ task }) => task === undefined || known.has(task))
  const wrong = violations({ submitted: acknowledged, records, witness, leaseTtl: LEASE })
  if (alive < PROCESSES) wrong.push(`${PROCESSES - alive} worker processes gave up`)
  for (const { code, signal } of ends) if (code !== 0) wrong.push(`a worker ended with ${code ?? signal}`)
  return { acknowledged: acknowledged.length, refused, killed, wrong, recoveries }
}
