import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { connect, defineTask, type Handler, silentLogger } from '../../src/index.ts'
import { drain } from '../../src/testing/drain.ts'
import { begin } from '../runtime/setup.ts'

describe('drain', () => {
  it('runs what is due, and what that makes due, then returns what happened', async () => {
    const { client } = await begin()
    await client.submit('first', 1)
    await client.submit('later', 2, { delay: '1h' })
    const first: Handler = async (_, ctx) => void (await ctx.client.submit('second', 3))
    const moves = await drain(client, { first, second: () => 'done', later: () => 'not yet' })
    expect(
      moves
        .filter(({ move }) => move === 'complete')
        .map(({ task }) => task.type)
        .sort(),
    ).toEqual(['first', 'second'])
    expect((await client.count({ status: 'scheduled' })).count).toBe(1)
  })

  it('with a fake clock goes on to what is scheduled or in backoff, until nothing is left', async () => {
    const { client, clock } = await begin()
    const { id, createdAt } = await client.submit('later', 2, { delay: '1h' })
    const mortal = await client.submit('later', 3, { delay: '2h', ttl: '90m' })
    const later: Handler = (_, ctx) => {
      if (ctx.attempt < 3) throw new Error('again')
      return 'third time lucky'
    }
    await drain(client, { later }, { clock })
    expect((await client.get(id)).output).toBe('third time lucky')
    expect((await client.get(mortal.id)).status).toBe('expired')
    expect(clock.wall()).toBe(createdAt + 90 * 60_000)
  })

  it('does not wait for ever for a task that reschedules itself for ever', async () => {
    const { client, clock } = await begin()
    await client.submit('again', 1)
    const again: Handler = (_, ctx) => ctx.reschedule('1m')
    await expect(drain(client, { again }, { clock, mostRounds: 20 })).rejects.toThrow(/reschedule itself forever/)
  })

  it('takes definitions with their handlers, serves the queues it is told, and leaves other types alone', async () => {
    const { client, clock } = await begin()
    const double = defineTask('double', { input: z.number(), queue: 'sums' })
    const task = await client.submit(double, 21)
    const other = await client.submit('other', 1, { queue: 'sums', delay: '1h' })
    const handler: Handler = (input) => (input as number) * 2
    await drain(client, [[double, handler]], { clock, queues: ['sums'] })
    expect((await client.get(task.id)).output).toBe(42)
    expect((await client.get(other.id)).status).toBe('pending')
  })

  it('leaves a paused queue as it is', async () => {
    const { client, clock } = await begin()
    await client.queue('default').pause()
    const { id } = await client.submit('work', 1, { delay: '1m' })
    await drain(client, { work: () => {} }, { clock })
    expect((await client.get(id)).status).toBe('pending')
  })

  it('rejects when the store is gone', async () => {
    const { client, store } = await begin()
    await client.submit('work', 1)
    await store.close()
    await expect(drain(client, { work: () => {} })).rejects.toMatchObject({ code: 'STORE_CLOSED' })
  })

  it('on SQLite runs every last task, one at a time', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-drain-'))
    const client = await connect(`sqlite:${join(folder, 'a.db')}`, { logger: silentLogger })
    try {
      await client.submitMany(Array.from({ length: 40 }, (_, i) => ({ type: 'work', input: i })))
      const seen: unknown[] = []
      await drain(client, { work: async (input) => void seen.push(input) }, { concurrency: 1 })
      expect(seen).toEqual(Array.from({ length: 40 }, (_, i) => i))
    } finally {
      await client.close()
      await rm(folder, { recursive: true, force: true })
    }
  })
})
