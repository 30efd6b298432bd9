/** The figures of docs/stores/s3.md, measured again. `node bench/s3-costs.ts` prints them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { startSimulatedS3 } from '../../servers/simulated-s3/start.ts'
import { documentedCosts, measureCosts, SCENES } from './costs.ts'

const page = readFileSync(join(import.meta.dirname, '../../../docs/stores/s3.md'), 'utf8')
const documented = documentedCosts(page)
const s3 = await startSimulatedS3({ latency: 30 })
afterAll(() => s3.remove())

/** Polls and meetings depend on how busy the machine is. */
const TOLERANCE = 0.15

test('every scene is in the page, and nothing else', () => {
  expect([...documented.keys()]).toEqual(SCENES.map(([name]) => name))
})

for (const scene of SCENES)
  test(`${scene[0]}: a million tasks cost what the page says`, { timeout: 120_000 }, async () => {
    const { dollars } = await measureCosts(s3, scene)
    const said = documented.get(scene[0])!
    expect(dollars).toBeLessThan(said * (1 + TOLERANCE))
    expect(dollars).toBeGreaterThan(said * (1 - TOLERANCE))
  })
