import { expect, it } from 'vitest'
import { fullJitter } from '../../../src/core/values/jitter.ts'

const WAITS = { first: 20, longest: 1_000 }
const tries = [0, 1, 2, 3, 5, 6, 100, 5_000]

it('the limit of a wait doubles with each try, and never exceeds the longest', () => {
  expect(tries.map((n) => fullJitter(WAITS, n, 1))).toEqual([20, 40, 80, 160, 640, 1_000, 1_000, 1_000])
})

it('a wait is any part of its limit', () => {
  expect(tries.map((n) => fullJitter(WAITS, n, 0.25))).toEqual([5, 10, 20, 40, 160, 250, 250, 250])
  expect(fullJitter(WAITS, 5_000, 0)).toBe(0)
})
