/** When PostgreSQL's other processes are notified: at once while it is quiet, less often the longer the server takes. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Notices } from '../../src/store/postgres/wake/notices.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Notices of a server that takes `answerAfter` milliseconds for each, and when they were sent. */
const begin = (answerAfter: number) => {
  const from = performance.now()
  const sent: { readonly at: number; readonly queues: readonly string[] }[] = []
  const notices = new Notices(async (queues) => {
    sent.push({ at: performance.now() - from, queues })
    await new Promise((done) => setTimeout(done, answerAfter))
  })
  return { notices, sent }
}

test('a notice goes out at once while it is quiet', async () => {
  const { notices, sent } = begin(2)
  for (let n = 0; n < 5; n++) {
    notices.notify(['a'])
    await vi.advanceTimersByTimeAsync(20)
  }
  expect(sent.map(({ at }) => at)).toEqual([0, 20, 40, 60, 80])
})

test('what is written during a notice is told by one more, and nothing after that', async () => {
  const { notices, sent } = begin(2)
  for (let n = 0; n < 100; n++) notices.notify(['a'])
  await vi.advanceTimersByTimeAsync(1_000)
  expect(sent.map(({ at }) => at)).toEqual([0, 4])
})

test('a write carries the notice itself, and what others write meanwhile is told after it', async () => {
  const { notices, sent } = begin(2)
  const write = notices.begin(['a', 'b'])
  expect(write.queues).toEqual(['a', 'b'])
  const second = notices.begin(['a', 'c'])
  expect(second.queues).toEqual(['c'])
  second.end()
  await vi.advanceTimersByTimeAsync(3)
  expect(sent).toEqual([])
  write.end()
  await vi.advanceTimersByTimeAsync(100)
  expect(sent).toEqual([{ at: 6, queues: ['a'] }])
})

test.each([
  { answerAfter: 0, most: 1_001 },
  { answerAfter: 5, most: 101 },
  { answerAfter: 100, most: 8 },
])(
  'a flood is told less often the longer an answer takes: $answerAfter ms, at most $most a second',
  async ({ answerAfter, most }) => {
    const { notices, sent } = begin(answerAfter)
    for (let n = 0; n < 1_000; n++) {
      notices.notify(['a'])
      await vi.advanceTimersByTimeAsync(1)
    }
    expect(sent.length).toBeLessThanOrEqual(most)
    expect(sent.length).toBeGreaterThan(most / 3)
  },
)

test('queues do not wait for each other', async () => {
  const { notices, sent } = begin(50)
  notices.notify(['a'])
  notices.notify(['b'])
  expect(sent.map(({ queues }) => queues)).toEqual([['a'], ['b']])
})

test('after the end nothing is told any more', async () => {
  const { notices, sent } = begin(2)
  notices.notify(['a'])
  notices.notify(['a'])
  notices.close()
  notices.notify(['b'])
  await vi.advanceTimersByTimeAsync(1_000)
  expect(sent).toHaveLength(1)
})
