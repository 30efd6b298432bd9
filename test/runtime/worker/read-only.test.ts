/** A store that can be read and not written for a while: a failover to a standby, a file system that was mounted anew. */
import { describe, expect, it } from 'vitest'
import { HoldfastError } from '../../../src/index.ts'
import type { Store } from '../../../src/store/store.ts'
import { begin, gate, movesOf } from '../setup.ts'

const WRITES: ReadonlySet<string | symbol> = new Set(['insert', 'claim', 'commit', 'renew', 'remove'])

/** `refused` counts what was refused, by method. */
const readOnlyWhile =
  (isReadOnly: () => boolean, refused: Map<string, number>) =>
  (store: Store): Store =>
    new Proxy(store, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target)
        if (typeof value !== 'function') return value
        return (...given: unknown[]) => {
          if (!WRITES.has(name) || !isReadOnly()) return (value as (...args: unknown[]) => unknown).apply(target, given)
          refused.set(String(name), (refused.get(String(name)) ?? 0) + 1)
          return Promise.reject(new HoldfastError('STORE_READ_ONLY'))
        }
      },
    })

const scene = async () => {
  let isReadOnly = false
  const refused = new Map<string, number>()
  const bench = await begin({ through: readOnlyWhile(() => isReadOnly, refused) })
  return {
    ...bench,
    refused,
    readOnly: (is: boolean) => {
      isReadOnly = is
    },
    through: readOnlyWhile(() => isReadOnly, refused),
  }
}

describe('while the store cannot be written', () => {
  it('the end of a run is kept, and written when it can be written again', async () => {
    const { client, clock, readOnly, refused } = await scene()
    const done = gate<string>()
    const ended: string[] = []
    client
      .worker({ hooks: { onTaskEnd: (task, error) => void ended.push(`${task.status} ${error}`) } })
      .handle('work', () => done.opened)
      .start()
    const { id } = await client.submit('work', 1, { maxRetries: 0 })
    await clock.advance(1_000)
    readOnly(true)
    done.open('result')
    await clock.advance(30_000)
    expect(refused.get('commit')).toBeGreaterThan(3)
    expect(ended).toEqual([])
    readOnly(false)
    await clock.advance(5_000)
    const task = await client.get(id)
    expect(task.output).toBe('result')
    expect(movesOf(task)).toEqual(['submit → pending', 'claim → running', 'complete → completed'])
    expect(ended).toEqual(['completed null'])
  })

  it('a failure is kept too, and so is a removal by retention', async () => {
    const { another, clock, store, readOnly, through } = await scene()
    const client = await another({ through, retention: { completed: 0 } })
    const done = gate()
    client
      .worker()
      .handle('work', () => done.opened)
      .handle('bad', () => done.opened.then(() => Promise.reject(new Error('no'))))
      .start()
    const [good, bad] = [await client.submit('work', 1), await client.submit('bad', 1, { maxRetries: 0 })]
    await clock.advance(1_000)
    readOnly(true)
    done.open()
    await clock.advance(3_000)
    readOnly(false)
    await clock.advance(5_000)
    const [gone, failed] = await store.get([good.id, bad.id])
    expect(gone).toBeNull()
    expect(failed).toMatchObject({ status: 'failed', lastError: { message: 'no' } })
  })

  it('nobody takes the leases of others, nor for one of their lengths afterwards', async () => {
    const { client, another, clock, readOnly, through } = await scene()
    const done = gate<string>()
    client
      .worker()
      .handle('work', () => done.opened)
      .start()
    const { id } = await client.submit('work', 1, { maxRetries: 0 })
    await clock.advance(1_000)
    const other = await another({ through, name: 'other' })
    other
      .worker()
      .handle('nothing', () => {})
      .start()
    await clock.advance(10_000)
    readOnly(true)
    await clock.advance(20_000)
    done.open('result')
    await clock.advance(100)
    readOnly(false)
    await clock.advance(10_000)
    expect(movesOf(await client.get(id))).toEqual(['submit → pending', 'claim → running', 'complete → completed'])
  })
})
