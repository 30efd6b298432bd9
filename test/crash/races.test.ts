/** Many processes on one file, with nothing going wrong: every task runs once, and nobody goes hungry. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { connect, silentLogger } from '../../src/index.ts'
import type { Plant } from './planted.ts'
import { cleanUp, folder, start, until } from './processes.ts'
import { readRecords, violations } from './runs.ts'
import { chance, report, seededChance } from './seed.ts'
import { readWitnesses } from './witness.ts'

cleanUp()

const LEASE = 5_000

interface Race {
  readonly tasks: number
  readonly processes: number
  readonly workers: number
  readonly seed: number
  readonly plant?: Plant
}

const race = async ({ tasks, processes, workers, seed, plant = 'none' }: Race) => {
  const place = folder()
  const file = join(place, 'race.db')
  const client = await connect(`sqlite:${file}`, { logger: silentLogger })
  const results = await client.submitMany(Array.from({ length: tasks }, (_, i) => ({ type: 'work', input: i })))
  const submitted = results.map((result) => (result.ok ? result.task.id : ''))
  const { between } = chance(seed)
  const children = Array.from({ length: processes }, () =>
    start('worker', {
      file,
      folder: place,
      seed: between(0, 1e9),
      workers,
      takes: [2, 2],
      leaseTtl: `${LEASE}ms`,
      barrier: true,
      plant,
    }),
  )
  await Promise.all(children.map((child) => child.heard('ready')))
  const begun = performance.now()
  for (const child of children) child.signal('SIGUSR2')
  await until(
    'all are completed',
    async () => (await client.count({ status: 'completed' })).count >= tasks,
    120_000,
    50,
  )
  const seconds = (performance.now() - begun) / 1000
  for (const child of children) child.signal('SIGTERM')
  await Promise.all(children.map((child) => child.end()))
  await client.close()
  const witness = readWitnesses(place)
  const starts = witness.filter(({ what }) => what === 'start')
  const shares = children.map(({ pid }) => starts.filter((line) => line.pid === pid).length)
  const records = await readRecords(file, submitted)
  return { seconds, shares, starts, records, wrong: violations({ submitted, records, witness, leaseTtl: LEASE }) }
}

test('16 workers in 4 processes run 20,000 tasks once each, and share them', async () => {
  const { seed } = seededChance('races')
  const tasks = 20_000
  const { seconds, shares, starts, records, wrong } = await race({ tasks, processes: 4, workers: 4, seed })
  report(
    `races: ${tasks} tasks in ${seconds.toFixed(1)} s, ${Math.round(tasks / seconds)} tasks/s; shares ${shares.join(', ')}`,
  )
  expect(wrong.slice(0, 5)).toEqual([])
  expect(starts.length).toBe(tasks)
  expect(records.every((record) => record?.attempts === 1)).toBe(true)
  expect(Math.max(...shares)).toBeLessThanOrEqual(3 * Math.min(...shares))
})

test('a claim that hands one task to two workers is noticed', async () => {
  const { wrong } = await race({ tasks: 300, processes: 2, workers: 2, seed: 1, plant: 'claim-twice' })
  expect(wrong.length).toBeGreaterThan(0)
})
