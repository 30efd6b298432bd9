/** An acknowledged task is on disk, not only in the page cache, which no kill -9 would show: strace does. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { AcknowledgerPlan } from './children/acknowledger.ts'
import { type Audit, auditTrace, STRACE } from './fsync-audit.ts'
import { cleanUp, folder, start } from './processes.ts'
import { report } from './seed.ts'

cleanUp()

const SUBMITS = 200

const whyNoStrace = ((): string | null => {
  const tried = spawnSync(STRACE[0]!, ['-f', '-e', 'trace=fsync', 'true'], { encoding: 'utf8' })
  if (tried.error) return 'strace is not installed'
  return tried.status === 0 ? null : `strace is not permitted here: ${tried.stderr.trim()}`
})()
if (whyNoStrace !== null) report(`durability: skipped, ${whyNoStrace}`)

const audit = async (by: AcknowledgerPlan['by']): Promise<Audit> => {
  const place = folder()
  const trace = join(place, 'trace')
  const plan: AcknowledgerPlan = { file: join(place, 'sync.db'), acks: join(place, 'acks'), submits: SUBMITS, by }
  const child = start('acknowledger', plan, { under: [...STRACE, '-o', trace] })
  await child.heard('done')
  await child.end()
  const found = auditTrace(readFileSync(trace, 'utf8'))
  report(
    `durability: ${by}: ${found.acks} acknowledged, ${found.syncs} completed syncs of the log, ${found.early.length} acknowledged too early`,
  )
  return found
}

test.skipIf(whyNoStrace !== null)(
  'every acknowledged submit was synced to disk before it was acknowledged',
  async () => {
    const { acks, syncs, early } = await audit('store')
    expect(acks).toBe(SUBMITS)
    expect(early).toEqual([])
    expect(syncs).toBeGreaterThanOrEqual(SUBMITS)
  },
)

test.skipIf(whyNoStrace !== null)('the audit finds nothing wrong with a bare loop under synchronous=full', async () => {
  expect((await audit('full')).early).toEqual([])
})

test.skipIf(whyNoStrace !== null)('the audit notices synchronous=normal', async () => {
  const { acks, syncs, early } = await audit('normal')
  expect(acks).toBe(SUBMITS)
  expect(early.length).toBeGreaterThan(SUBMITS * 0.9)
  expect(syncs).toBeLessThan(SUBMITS / 10)
})
