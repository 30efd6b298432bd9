/** Submits that a store does not answer, or answers when nobody listens any more. */
import { describe, expect, it } from 'vitest'
import { HoldfastError } from '../../../src/index.ts'
import type { Store } from '../../../src/store/store.ts'
import { lossy } from '../../../src/testing/lossy-store.ts'
import { begin, refuses } from '../setup.ts'

const idOf = (error: unknown): string => ((error as HoldfastError).details['ids'] as string[])[0]!

describe('a submit whose reply was lost for good', () => {
  const losing = async () => {
    let isLosing = false
    const bench = await begin({
      through: (store) => lossy(store, (call) => (isLosing && call === 'insert' ? 'lose-reply' : 'pass')),
    })
    const { client, passing } = bench
    isLosing = true
    const error: unknown = await passing(client.submit('work', { n: 1 }).catch((one: unknown) => one))
    isLosing = false
    return { ...bench, error }
  }

  it('says that it is unclear, and a repeat with the same id returns the task', async () => {
    const { client, error } = await losing()
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
    const id = idOf(error)
    const task = await client.submit('work', { n: 1 }, { id })
    expect({ id: task.id, deduplicated: task.deduplicated }).toEqual({ id, deduplicated: false })
    expect((await client.count()).count).toBe(1)
  })

  it('returns it as it is by then', async () => {
    const { client, error, passing } = await losing()
    await passing(
      client
        .worker()
        .handle('work', () => 'done')
        .drain(),
    )
    const task = await client.submit('work', { n: 1 }, { id: idOf(error) })
    expect(task.output).toBe('done')
  })

  it('is recognised once: the next submit with this id is a clash', async () => {
    const { client, error } = await losing()
    const id = idOf(error)
    await client.submit('work', { n: 1 }, { id })
    await refuses('ALREADY_EXISTS')(client.submit('work', { n: 1 }, { id }))
  })

  it('is a clash when something else is submitted under its id, or when another client has it', async () => {
    const { client, another, error } = await losing()
    const id = idOf(error)
    await refuses('ALREADY_EXISTS')(client.submit('work', { n: 2 }, { id }))
    await refuses('ALREADY_EXISTS')(client.submit('other', { n: 1 }, { id }))
    const stranger = await another()
    await refuses('ALREADY_EXISTS')(stranger.submit('work', { n: 1 }, { id }))
  })

  it('is recognised in a batch too', async () => {
    const { client, error } = await losing()
    const results = await client.submitMany([
      { type: 'work', input: { n: 1 }, id: idOf(error) },
      { type: 'work', input: { n: 2 } },
    ])
    expect(results.map(({ ok }) => ok)).toEqual([true, true])
    expect((await client.count()).count).toBe(2)
  })
})

describe('a submit while connections are refused', () => {
  const refused =
    (isRefused: () => boolean, tries: { count: number }, reason: string) =>
    (store: Store): Store =>
      new Proxy(store, {
        get: (target, name) => {
          const value: unknown = Reflect.get(target, name, target)
          if (typeof value !== 'function') return value
          return (...given: unknown[]) => {
            if (name !== 'insert' || !isRefused())
              return (value as (...args: unknown[]) => unknown).apply(target, given)
            tries.count++
            return Promise.reject(new HoldfastError('STORE_UNAVAILABLE', 'refused', { reason }))
          }
        },
      })

  const away = async (reason = 'refused') => {
    let isRefused = true
    const tries = { count: 0 }
    const bench = await begin({ through: refused(() => isRefused, tries, reason) })
    return {
      ...bench,
      tries,
      comeBack: () => {
        isRefused = false
      },
    }
  }

  it.each(['refused', 'not-ready', 'too-many-connections'])('waits for a server that says %s', async (reason) => {
    const { client, clock, comeBack, passing } = await away(reason)
    const submitting = client.submit('work', 1)
    await clock.advance(6_000)
    comeBack()
    expect((await passing(submitting)).status).toBe('pending')
  })

  it('gives up after ten seconds, and says that nothing was stored', async () => {
    const { client, clock, passing, tries } = await away()
    const begun = clock.mono()
    await refuses('STORE_UNAVAILABLE', /Nothing was stored/)(passing(client.submit('work', 1)))
    expect(clock.mono() - begun).toBeGreaterThan(9_000)
    expect(clock.mono() - begun).toBeLessThan(12_000)
    expect(tries.count).toBeLessThan(60)
  })

  it('stops when the signal of the caller aborts, and does not try again', async () => {
    const { client, clock, tries } = await away()
    const controller = new AbortController()
    const submitting = client.submit('work', 1, { signal: controller.signal })
    submitting.catch(() => {})
    await clock.advance(500)
    controller.abort()
    await refuses('ABORTED')(submitting)
    const { count } = tries
    await clock.advance(20_000)
    expect(tries.count).toBe(count)
  })
})
