/** Lists, counts and stats that pass no more than some tasks, as a client asks for them. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Client, connect, silentLogger } from '../../src/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-glance-'))
let client: Client
let rare: string

beforeAll(async () => {
  client = await connect(`sqlite:${join(folder, 'q.db')}`, { logger: silentLogger })
  rare = (await client.submit('rare', 1)).id
  await (await client.claim(rare, { workerId: 'w' })).complete()
  const [later, now] = [12_000, 1_500]
  await client.submitMany(Array.from({ length: later }, (_, i) => ({ type: 'mail', input: i, delay: '1h' as const })))
  await client.submitMany(Array.from({ length: now }, (_, i) => ({ type: 'mail', input: i, queue: 'other' })))
})

afterAll(async () => {
  await client.close()
  rmSync(folder, { recursive: true, force: true })
})

it('a page may be empty and have a cursor, and who goes on finds what there is', async () => {
  const first = await client.list({ type: 'rare', maxScanned: 5_000 })
  expect(first.tasks).toEqual([])
  expect(first.cursor).not.toBeNull()
  const found: string[] = []
  for (let cursor = first.cursor; cursor !== null; ) {
    const page = await client.list({ type: 'rare', maxScanned: 5_000, cursor })
    found.push(...page.tasks.map(({ id }) => id))
    cursor = page.cursor
  }
  expect(found).toEqual([rare])
})

it('so may a page in the order of creation, and the first ready task is found behind many others by the index', async () => {
  const first = await client.list({ type: 'nothing', order: 'oldest', maxScanned: 5_000 })
  expect(first.tasks).toEqual([])
  expect(first.cursor).not.toBeNull()
  const next = await client.list({ type: 'nothing', order: 'oldest', maxScanned: 50_000, cursor: first.cursor! })
  expect(next).toEqual({ tasks: [], cursor: null })
  const page = { status: 'ready', order: 'oldest', limit: 2, maxScanned: 1_000 } as const
  const ready = await client.list({ ...page, type: 'mail' })
  expect(ready.tasks.map(({ queue, input }) => [queue, input])).toEqual([
    ['other', 0],
    ['other', 1],
  ])
  expect((await client.list({ ...page, queue: 'other', cursor: ready.cursor! })).tasks[0]?.input).toBe(2)
  expect(await client.list({ ...page, type: 'rare' })).toEqual({ tasks: [], cursor: null })
})

it('without a limit to what it passes, a page is found at once', async () => {
  const { tasks, cursor } = await client.list({ type: 'rare' })
  expect([tasks.map(({ id }) => id), cursor]).toEqual([[rare], null])
})

it('a count says that it stopped; one of a whole status is exact, whatever the cap', async () => {
  expect(await client.count({ type: 'rare' }, { maxScanned: 5_000 })).toEqual({ count: 0, capped: true })
  expect(await client.count({ type: 'rare' })).toEqual({ count: 1, capped: false })
  expect(await client.count({ status: 'scheduled' }, { cap: 10_000, maxScanned: 50_000 })).toEqual({
    count: 10_000,
    capped: true,
  })
  expect(await client.count({ status: 'pending' }, { cap: 10, maxScanned: 1_000 })).toEqual({
    count: 13_500,
    capped: false,
  })
})

it('stats name what may be more, and are exact in everything else', async () => {
  const [main, other] = await client.stats({ cap: 10_000 })
  expect(main).toMatchObject({ queue: 'default', scheduled: 5_000, ready: 0, completed: 1 })
  expect(main!.capped).toEqual(['scheduled', 'retrying'])
  expect(other).toMatchObject({ queue: 'other', ready: 1_500, scheduled: 0, capped: [] })
  const [whole] = await client.stats()
  expect(whole).toMatchObject({ scheduled: 12_000, retrying: 0, capped: [] })
})
