/** The store's thread has a heap of its own. What is too much for it must not come to it, and its death must not be silent. */
import { mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type Client, connect, silentLogger, type TaskContext } from '../../src/index.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { openSqlite } from '../../src/store/sqlite/store.ts'
import type { Store } from '../../src/store/store.ts'
import { LeaseBoard } from '../../src/store/threads/lease-board.ts'
import { want } from '../../src/testing/conformance/build.ts'
import { refuses } from '../runtime/setup.ts'

const HEAP = 40
const MEGABYTE = 'x'.repeat(1_000_000)
const KILOBYTE = 'x'.repeat(1_000)

const begin = async (): Promise<{ client: Client; store: Store; file: string }> => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-thread-'))
  const file = join(folder, 'small.db')
  const store = await openSqlite(file, { threadHeap: HEAP })
  const client = await connect(store, { logger: silentLogger })
  onTestFinished(async () => {
    await client.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return { client, store, file }
}

/** More than it can hold: it dies while it reads the message. */
const kill = (store: Store): Promise<unknown> =>
  store.get(Array.from({ length: 60_000 }, (_, n) => `no task ${n} ${KILOBYTE}`))

const submitLarge = async (client: Client, amount: number): Promise<void> => {
  for (let n = 0; n < amount; n++) await client.submit('large', `${n} ${MEGABYTE}`)
}

test('a list of more than the heap of the thread comes in pages, each of which it can hold', async () => {
  const { client } = await begin()
  await submitLarge(client, 60)
  const seen = new Set<string>()
  let pages = 0
  for (let cursor: string | null | undefined; cursor !== null; pages++) {
    const page = await client.list({ limit: 1_000, ...(cursor === undefined ? null : { cursor }) })
    expect(page.tasks.length).toBeLessThan(12)
    for (const { id } of page.tasks) seen.add(id)
    cursor = page.cursor
  }
  expect(seen.size).toBe(60)
  expect(pages).toBeGreaterThan(5)
})

test('a worker with room for more than the heap of the thread takes as much as one answer can hold', async () => {
  const { client, store } = await begin()
  await submitLarge(client, 60)
  const { leased, next } = await store.claim({
    queue: 'default',
    types: ['large'],
    limit: 60,
    workerId: 'by hand',
    op: 'op',
    leaseTtl: 60_000,
    dueLimit: 0,
    now: null,
  })
  expect(leased.length).toBe(9)
  expect(next).toBeLessThanOrEqual(Date.now())
  // In order: the first that were submitted.
  expect(leased.map(({ input }) => Number.parseInt(input.slice(1), 10))).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8])
  const worker = client.worker({ concurrency: 60 }).handle('large', () => {})
  await worker.drain()
  expect((await client.count({ status: 'completed' })).count).toBe(51)
})

test('tasks that are asked for by their ids all come, however large they are together', async () => {
  const { client, store } = await begin()
  await submitLarge(client, 60)
  const ids: string[] = []
  for (let after: string | undefined; ids.length < 60; after = ids.at(-1)!) {
    const page = { order: 'oldest', limit: 60, now: null, ...(after && { after }) } as const
    for (const { id } of (await store.list({}, page)).tasks) ids.push(id)
  }
  const found = await store.get([...ids, '01900000-0000-7000-8000-000000000001'])
  expect(found.map((task) => task?.id ?? null)).toEqual([...ids, null])
})

test('a batch that is more than the heap of the thread is submitted, run and written all the same', async () => {
  const { client } = await begin()
  const items = Array.from({ length: 60 }, (_, n) => ({ type: 'large', input: `${n} ${MEGABYTE}` }))
  const results = await client.submitMany(items)
  expect(results.every(({ ok }) => ok)).toBe(true)
  const worker = client.worker({ concurrency: 60 }).handle('large', (input) => input)
  await worker.drain()
  expect((await client.count({ status: 'completed' })).count).toBe(60)
})

test('a thread that dies rejects what is under way with STORE_UNAVAILABLE, and the store goes on', async () => {
  const { client, store } = await begin()
  const { id } = await client.submit('work', 1)
  const dying = kill(store)
  const beside = store.get([id])
  await refuses('STORE_UNAVAILABLE', /thread died: its heap was full/)(dying)
  await refuses('STORE_UNAVAILABLE')(beside)
  expect((await client.get(id)).input).toBe(1)
  expect((await client.submit('work', 2)).status).toBe('pending')
})

test('a client whose thread dies again and again can still be closed', async () => {
  const { client, store } = await begin()
  for (let i = 0; i < 3; i++) await refuses('STORE_UNAVAILABLE')(kill(store))
  const dying = kill(store)
  dying.catch(() => {})
  await client.close()
  await refuses('STORE_CLOSED')(store.get([]))
})

test('leases are renewed by the thread that takes its place', async () => {
  const { client, store } = await begin()
  const { id } = await client.submit('work', null)
  let end = (): void => {}
  const ended = new Promise<void>((done) => {
    end = done
  })
  const context = new Promise<TaskContext>((started) => {
    const worker = client.worker({ leaseTtl: '5s' }).handle('work', (_, ctx) => {
      started(ctx)
      return ended
    })
    worker.start()
  })
  const { signal } = await context
  await refuses('STORE_UNAVAILABLE')(kill(store))
  const claimedUntil = (await client.get(id)).lease!.expiresAt
  await expect
    .poll(async () => (await client.get(id)).lease!.expiresAt, { timeout: 20_000 })
    .toBeGreaterThan(claimedUntil + 5_000)
  expect(signal.aborted).toBe(false)
  end()
  expect((await client.waitForEnd(id)).history.map(({ move }) => move)).toEqual(['submit', 'claim', 'complete'])
})

test('leases are renewed without another call of the store', async () => {
  const { client, store } = await begin()
  const { id } = await client.submit('work', null)
  const leaseTtl = 60_000
  const { leased } = await store.claim(want({ op: 'op', leaseTtl, now: null }))
  const held = [{ slot: 0, id, token: leased[0]!.lease!.token }]
  const board = LeaseBoard.withSlots(1)
  let reports = 0
  const keeper = store.keeper!({
    workerId: 'w',
    board,
    leaseTtl,
    every: leaseTtl / 3,
    held: () => held,
    report: () => void reports++,
  })
  board.beat(systemClock.mono())
  board.wait(0)
  board.start(0, null)
  const beating = setInterval(() => board.beat(systemClock.mono()), 50)
  onTestFinished(() => clearInterval(beating))
  keeper.hold(held, systemClock.mono() - leaseTtl / 2)
  await expect.poll(() => reports, { timeout: 20_000 }).toBeGreaterThan(0)
  await refuses('STORE_UNAVAILABLE')(kill(store))
  const before = reports
  await expect.poll(() => reports, { timeout: 20_000 }).toBeGreaterThan(before)
  keeper.close()
})

test('a thread that finds another store in its place refuses with STORE_IDENTITY_CHANGED', async () => {
  const { client, store, file } = await begin()
  const { id } = await client.submit('work', 1)
  const other = await connect(`sqlite:${file}.other`, { logger: silentLogger })
  await other.submit('work', 2)
  await other.close()
  const dying = kill(store)
  for (const part of ['', '-wal', '-shm']) rmSync(`${file}${part}`, { force: true })
  renameSync(`${file}.other`, file)
  await refuses('STORE_UNAVAILABLE')(dying)
  await refuses('STORE_IDENTITY_CHANGED')(client.get(id))
})
