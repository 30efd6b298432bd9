/** The figures of docs/stores/s3.md, measured again. `node bench/s3-costs.ts` prints them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startSimulatedS3 } from '../../servers/simulated-s3/start.ts'
import { documentedCosts, measureCosts, SCENES } from './costs.ts'

const page = readFileSync(join(import.meta.dirname, '../../../docs/stores/s3.md'), 'utf8')
const documented = documentedCosts(page)
/** Polls and meetings depend on how busy the machine is. */
const TOLERANCE = 0.15

test('every scene is in the page, and nothing else', () => {
  expect([...documented.keys()]).toEqual(SCENES.map(([name]) => name))
})

for (const scene of SCENES) {
  // With so few tasks a second nearly all of it is waiting.
  const isIdle = scene[1].rate === 5
  const sentence = `${scene[0]}: a million tasks cost what the page says`
  test(sentence, { timeout: 120_000, concurrent: isIdle }, async ({ onTestFinished }) => {
    const s3 = await startSimulatedS3({ latency: 30 })
    onTestFinished(() => s3.remove())
    const { dollars } = await measureCosts(s3, scene)
    const said = documented.get(scene[0])!
    expect(dollars).toBeLessThan(said * (1 + TOLERANCE))
    expect(dollars).toBeGreaterThan(said * (1 - TOLERANCE))
  })
}
