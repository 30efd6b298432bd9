/** A hundred thousand dead letters: how long it takes to see what they died of, and to bring them back. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { expect, onTestFinished, test } from 'vitest'
import { connect, silentLogger } from '../../src/index.ts'
import { report } from '../crash/seed.ts'

const COUNT = 100_000

const timed = async <T>(work: () => Promise<T>): Promise<readonly [T, number]> => {
  const begun = performance.now()
  return [await work(), performance.now() - begun]
}

test('100,000 dead letters are grouped in under 2 s and replayed at over 5,000 a second', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-dead-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const client = await connect(`sqlite:${join(folder, 'dead.db')}`, { logger: silentLogger })
  onTestFinished(() => client.close())
  await client.submitMany(
    Array.from({ length: COUNT }, (_, n) => ({ type: 'mail', input: { n } })),
    { maxRetries: 0 },
  )
  await client
    .worker({ concurrency: 500 })
    .handle('mail', async (input) => {
      const { n } = input as { n: number }
      throw new Error(`user ${n} has no ${['address', 'name', 'account'][n % 3]}`)
    })
    .drain()
  let fastest = Number.POSITIVE_INFINITY
  for (let turn = 0; turn < 3; turn++) {
    const [{ groups, scanned, capped }, took] = await timed(() => client.deadLetters.groups())
    expect([groups.length, scanned, capped]).toEqual([3, COUNT, false])
    fastest = Math.min(fastest, took)
  }
  const [{ results }, took] = await timed(() => client.deadLetters.replay({}))
  expect(results.filter((result) => 'error' in result)).toEqual([])
  const rate = results.length / (took / 1_000)
  report(`${COUNT} dead letters: grouped in ${fastest.toFixed(0)} ms, replayed at ${rate.toFixed(0)} a second`)
  expect(results).toHaveLength(COUNT)
  expect(fastest).toBeLessThan(2_000)
  expect(rate).toBeGreaterThan(5_000)
})
