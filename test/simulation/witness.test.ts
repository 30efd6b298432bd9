import { describe, expect, it } from 'vitest'
import { type Start, Witness } from './checker/witness.ts'

const claimed = (facts: Partial<Start> = {}): Start => ({
  id: 'task',
  fence: 1,
  worker: 'hand-1',
  token: 'a.0',
  input: '{}',
  at: 0,
  ...facts,
})

const startsAfter = (...claims: readonly Start[]): number => {
  const witness = new Witness()
  for (const claim of claims) witness.startByHand(claim)
  return witness.starts.get('task')!.length
}

describe('a claim by hand', () => {
  it('goes on with its run if the same worker claims again and is given the same lease', () => {
    const witness = new Witness()
    const first = witness.startByHand(claimed())
    witness.startByHand(claimed({ at: 1_000 })).output = '"by hand"'
    expect(witness.starts.get('task')).toEqual([first])
    expect(first.output, 'whichever of the two completes the task').toBe('"by hand"')
  })

  it.each([
    ['two workers are given one lease', { worker: 'hand-2' }],
    ['two leases have one fence', { token: 'b.0' }],
    ['the next run begins', { token: 'b.0', fence: 2 }],
  ])('is another run if %s', (_, other) => {
    expect(startsAfter(claimed(), claimed(other))).toBe(2)
  })

  it('is another run than that of a handler, which has no right to begin under its fence', () => {
    const witness = new Witness()
    const { token: _, ...run } = claimed()
    witness.start(run)
    witness.startByHand(claimed())
    expect(witness.starts.get('task')).toHaveLength(2)
  })
})
