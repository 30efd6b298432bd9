/** When a worker on PostgreSQL stops claiming beside its own claim: once claims take several times as long as the fastest did. */
import { expect, test } from 'vitest'
import { ClaimPace } from '../../src/store/postgres/claim/pace.ts'

/** Whether claims count as slowed after each of these durations, of 1,000 tasks each. */
const after = (...durations: number[]): boolean[] => {
  const pace = new ClaimPace()
  return durations.map((ms) => {
    pace.claimed(1_000, ms)
    return pace.isSlowed
  })
}

test('claims that take up to three times as long as the fastest are not slowed', () => {
  expect(after(40, 20, 45, 58)).toEqual([false, false, false, false])
})

test('claims that take longer are, until one is as fast again', () => {
  expect(after(20, 70, 90, 30)).toEqual([false, true, true, false])
})

test('what was fastest is forgotten: if all claims stay slow, that is the new pace', () => {
  const slowed = after(20, ...new Array<number>(2_000).fill(70))
  expect(slowed[1]).toBe(true)
  expect(slowed.at(-1)).toBe(false)
})

test('a claim of a few tasks says nothing about the pace', () => {
  const pace = new ClaimPace()
  pace.claimed(1_000, 20)
  pace.claimed(3, 5)
  expect(pace.isSlowed).toBe(false)
})
