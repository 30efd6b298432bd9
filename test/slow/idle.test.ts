/** Time itself: what an idle worker costs, and how soon a task starts. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { IdlerPlan } from '../crash/children/idler.ts'
import { cleanUp, folder, start } from '../crash/processes.ts'
import { percentile, report } from '../crash/seed.ts'

cleanUp()

const idle = async (plan: Omit<IdlerPlan, 'file'>): Promise<number> => {
  const child = start('idler', { file: join(folder(), 'idle.db'), ...plan })
  const { share } = await child.heard('measured')
  return share as number
}

test('an idle worker uses less than one per cent of a processor', async () => {
  const share = await idle({ settles: 2_000, measures: 5_000 })
  report(`idle: ${(share * 100).toFixed(2)} % of one processor`)
  expect(share).toBeLessThan(0.01)
})

test('a worker that polls all the time is noticed', async () => {
  const share = await idle({ settles: 500, measures: 1_000, pollInterval: '1ms' })
  report(`idle: ${(share * 100).toFixed(2)} % of one processor when polling every millisecond`)
  expect(share).toBeGreaterThan(0.01)
})

test('half of the tasks start within two milliseconds of being accepted', async () => {
  const child = start('starter', { file: join(folder(), 'start.db'), submits: 200 })
  const times = (await child.heard('measured'))['times'] as [number, number][]
  const [fromCall, fromReply] = [times.map(([ms]) => ms), times.map(([, ms]) => ms)]
  const figures = (of: readonly number[]): string =>
    [0.5, 0.99].map((share) => percentile(of, share).toFixed(2)).join(' / ')
  report(
    `submit to start, p50 / p99 of ${times.length}: ${figures(fromCall)} ms from the call, ${figures(fromReply)} ms from its reply`,
  )
  expect(percentile(fromReply, 0.5)).toBeLessThan(2)
})
