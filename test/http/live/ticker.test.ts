/** Seconds in numbers. */
import { expect, it } from 'vitest'
import { Ticker } from '../../../src/http/live/ticker.ts'
import { RUN_ENDS, type TaskChange } from '../../../src/index.ts'

const change = (weight?: number): TaskChange =>
  ({
    entry: { n: 1, at: 0, move: 'submit', to: 'pending', by: 'x', op: 'x' },
    task: { revision: 1, availableAt: 0, startedAt: null, history: [] },
    ...(weight === undefined ? null : { weight }),
  }) as unknown as TaskChange

const submits = (ticker: Ticker, now: number): number => ticker.turn(now).moves['submit'] ?? 0

it('counts a change in the second in which it was reported', () => {
  const ticker = new Ticker()
  ticker.restart(0)
  ticker.count(change())
  ticker.count(change())
  expect([submits(ticker, 1_000), submits(ticker, 2_000)]).toEqual([2, 0])
})

it('spreads an estimate over as many seconds as it stands for, so that no peak is shown that never was', () => {
  const ticker = new Ticker()
  ticker.restart(0)
  expect([submits(ticker, 1_000), submits(ticker, 2_000)]).toEqual([0, 0])
  for (let n = 0; n < 10; n++) ticker.count(change(300))
  const seconds = [3_000, 4_000, 5_000, 6_000].map((now) => submits(ticker, now))
  expect(seconds).toEqual([1_000, 1_000, 1_000, 0])
})

it('takes the duration of every run that ends, as the metrics do', () => {
  for (const move of RUN_ENDS) {
    const ticker = new Ticker()
    ticker.restart(0)
    ticker.count({
      entry: { n: 3, at: 900, move, to: 'pending', by: 'x', op: 'x' },
      task: { revision: 3, availableAt: 0, startedAt: 400, history: [] },
    } as unknown as TaskChange)
    expect(ticker.turn(1_000).duration, move).toMatchObject({ p50: 500 })
  }
})
