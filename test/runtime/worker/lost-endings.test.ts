/** What a worker is told of the end of a run whose reply was lost. */
import { describe, expect, it } from 'vitest'
import { lossy } from '../../../src/testing/lossy-store.ts'
import { begin, movesOf } from '../setup.ts'

describe('after the reply to an ending was lost', () => {
  it('onTaskEnd is called with the end of that run, not with the next run', async () => {
    let isLosing = false
    const { client, clock, another } = await begin({
      through: (store) =>
        lossy(store, (call) => {
          if (call !== 'commit' || !isLosing) return 'pass'
          isLosing = false
          return 'lose-reply'
        }),
    })
    const ended: { status: string; attempts: number; retryCount: number }[] = []
    const hooks = {
      onTaskEnd: ({ status, attempts, retryCount }: { status: string; attempts: number; retryCount: number }) =>
        void ended.push({ status, attempts, retryCount }),
    }
    const worker = client.worker({ concurrency: 1, hooks }).handle('work', () => {
      isLosing = true
      throw new Error('no')
    })
    worker.start()
    const other = await another({ name: 'other' })
    const { id } = await other.submit('work', 1, { retryPolicy: { base: 0, max: 0, jitter: 'none' }, maxRetries: 5 })
    // The other claims it in the moment in which the reply is on its way.
    const controller = new AbortController()
    const moved = client.events({ signal: controller.signal })
    const seen: string[] = []
    const watching = (async () => {
      for await (const { move } of moved) seen.push(move)
    })()
    for (let i = 0; i < 40 && ended.length === 0; i++) {
      await other.claim(id, { workerId: 'other' }).catch(() => {})
      await clock.advance(20)
    }
    expect(ended[0]).toEqual({ status: 'pending', attempts: 1, retryCount: 1 })
    expect(movesOf(await other.get(id)).slice(0, 4)).toEqual([
      'submit → pending',
      'claim → running',
      'fail → pending',
      'claim → running',
    ])
    controller.abort()
    await watching
    expect(seen.filter((move) => move === 'fail').length).toBe(1)
  })
})
