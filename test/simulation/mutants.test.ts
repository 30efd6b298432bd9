/** The bugs of `npm run simulate:mutants` follow the source. One of them is planted here, so that a checker that sees nothing is noticed. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { planted } from '../mutants/mutant.ts'
import { bundled, compiled } from './bundle.ts'
import { SIMULATED } from './mutants.ts'
import { shrink } from './shrink.ts'
import { type Outcome, simulate } from './simulation.ts'

const sources = fileURLToPath(new URL('../../src/', import.meta.url))

it.each(SIMULATED)('the bug in $file, $breaks, can still be planted', (mutant) => {
  const source = readFileSync(sources + mutant.file, 'utf8')
  expect(planted(source, mutant)).not.toBe(source)
})

it('finds a bug, shrinks its seed, and finds it again in what is left', async () => {
  const mutant = SIMULATED.find(({ breaks }) => breaks === 'a failed run costs no retry')!
  const program = compiled(await bundled(mutant))
  let found: Outcome | null = null
  let seed = 0
  while (found === null && seed < 100) {
    const outcome = await simulate(program, { seed: ++seed, profile: 'transactional' })
    if (outcome.violations.length > 0) found = outcome
  }
  expect(found).not.toBeNull()
  const { reduction, outcome, story } = await shrink(program, { seed, profile: 'transactional' }, found!)
  expect(outcome.violations[0]!.invariant).toBe(found!.violations[0]!.invariant)
  expect(outcome.settings.tasks).toBeLessThanOrEqual(found!.settings.tasks)
  expect(story.length).toBeGreaterThan(0)
  const again = await simulate(program, { seed, profile: 'transactional', reduction })
  expect(again.violations).toEqual(outcome.violations)
}, 300_000)
