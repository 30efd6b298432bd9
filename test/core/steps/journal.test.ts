import fc from 'fast-check'
import { expect, it } from 'vitest'
import { readJournal, stepState } from '../../../src/core/steps/journal.ts'
import type { JournalEntry } from '../../../src/core/task.ts'

const STEPS = ['a', 'b']

const entry = fc.record({
  n: fc.constant(0),
  kind: fc.constantFrom<JournalEntry['kind']>('step', 'sleep', 'wake', 'wait', 'take', 'timeout', 'signal'),
  name: fc.constantFrom(...STEPS),
  at: fc.integer({ min: 1, max: 3 }),
  op: fc.constant('op'),
  until: fc.integer({ min: 1, max: 3 }),
  signal: fc.constant('go'),
  signalId: fc.constantFrom('1', '2'),
})

it('one step read alone is what it is in the whole journal', () => {
  const isSame = fc.property(fc.array(entry, { maxLength: 12 }), (entries) => {
    // A signal is known from when it was sent, and its id names one signal only.
    const journal = entries.filter(
      ({ kind, signalId }, i) =>
        kind !== 'signal' || !entries.slice(0, i).some((one) => one.kind !== 'step' && one.signalId === signalId),
    )
    const { steps } = readJournal(journal)
    for (const name of STEPS) expect(stepState(journal, name)).toEqual(steps.get(name))
  })
  fc.assert(isSame, { numRuns: 2_000 })
})
