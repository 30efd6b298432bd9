/** submit(…, { tx }): a task that is there if and only if the caller's own transaction commits. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { type Client, type Code, connect, defineTask, silentLogger } from '../../src/index.ts'

/** A client, and the application's own connection to the same file with a table of its own. */
const begin = async (): Promise<{ client: Client; db: DatabaseSync; folder: string; orders: () => unknown[] }> => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-transaction-'))
  const client = await connect(`sqlite:${folder}/app.db`, { logger: silentLogger })
  const db = new DatabaseSync(join(folder, 'app.db'), { timeout: 5_000 })
  db.exec('create table orders (name text)')
  onTestFinished(async () => {
    db.close()
    await client.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const orders = (): unknown[] =>
    db
      .prepare('select name from orders')
      .all()
      .map((row) => row['name'])
  return { client, db, folder, orders }
}

const refused = async (promise: Promise<unknown>, code: Code): Promise<void> => {
  await expect(promise).rejects.toMatchObject({ code })
}

const total = async (client: Client): Promise<number> => (await client.count()).count

test('a task submitted in a transaction is there once it commits, and not before', async () => {
  const { client, db, orders } = await begin()
  db.exec(`begin immediate; insert into orders values ('tea')`)
  const task = await client.submit('brew', { cups: 2 }, { tx: db })
  expect(task.status).toBe('pending')
  await refused(client.get(task.id), 'TASK_NOT_FOUND')
  expect(await total(client)).toBe(0)
  db.exec('commit')
  expect((await client.get(task.id)).input).toEqual({ cups: 2 })
  expect(await total(client)).toBe(1)
  expect(orders()).toEqual(['tea'])
})

test('a task submitted in a transaction has its group', async () => {
  const { client, db } = await begin()
  db.exec('begin immediate')
  const grouped = await client.submit('brew', null, { tx: db, group: 'acme' })
  const alone = await client.submit('brew', null, { tx: db })
  db.exec('commit')
  const groups = db.prepare('select id, task_group, line from holdfast_task order by id').all()
  expect(groups.map((row) => ({ ...row }))).toEqual([
    { id: grouped.id, task_group: 'acme', line: 2 },
    { id: alone.id, task_group: null, line: 0 },
  ])
})

test('a task submitted in a transaction vanishes when it is rolled back', async () => {
  const { client, db } = await begin()
  db.exec('begin immediate')
  const { id } = await client.submit('brew', null, { tx: db })
  db.exec('rollback')
  await refused(client.get(id), 'TASK_NOT_FOUND')
  expect(await total(client)).toBe(0)
})

test('the task is written before submit returns, so a commit on the next line has it', async () => {
  const { client, db } = await begin()
  db.exec('begin immediate')
  const submitting = client.submit('brew', null, { tx: db })
  db.exec('commit')
  const { id } = await submitting
  expect((await client.get(id)).status).toBe('pending')
})

test('the commit wakes a worker that rests', async () => {
  const { client, db } = await begin()
  const worker = client.worker({ pollInterval: '1h' }).handle('brew', () => null)
  const first = await client.submit('brew', 'first')
  worker.start()
  await client.wait(first)
  db.exec('begin immediate')
  const { id } = await client.submit('brew', 'second', { tx: db })
  db.exec('commit')
  await client.wait(id, { timeout: '5s' })
  expect((await client.get(id)).attempts).toBe(1)
})

test('a key taken in a transaction finds its task in the same transaction and after it', async () => {
  const { client, db } = await begin()
  db.exec('begin immediate')
  const first = await client.submit('brew', 1, { tx: db, idempotencyKey: 'order-1' })
  const second = await client.submit('brew', 1, { tx: db, idempotencyKey: 'order-1' })
  await refused(client.submit('brew', 2, { tx: db, idempotencyKey: 'order-1' }), 'IDEMPOTENCY_CONFLICT')
  db.exec('commit')
  const third = await client.submit('brew', 1, { idempotencyKey: 'order-1' })
  expect([first, second, third].map(({ id }) => id)).toEqual(Array(3).fill(first.id))
  expect([first, second, third].map(({ deduplicated }) => deduplicated)).toEqual([false, true, true])
  expect(await total(client)).toBe(1)
})

test('a key taken in a transaction is free again when that is rolled back', async () => {
  const { client, db } = await begin()
  db.exec('begin immediate')
  const lost = await client.submit('brew', 1, { tx: db, idempotencyKey: 'order-2' })
  db.exec('rollback')
  const kept = await client.submit('brew', 'something else', { idempotencyKey: 'order-2' })
  expect(kept.deduplicated).toBe(false)
  expect(kept.id).not.toBe(lost.id)
})

test("the caller's transaction survives a submit that is refused, and so does what it wrote before", async () => {
  const { client, db, orders } = await begin()
  const { id } = await client.submit('brew', null)
  db.exec(`begin immediate; insert into orders values ('tea')`)
  await refused(client.submit('brew', null, { tx: db, id }), 'ALREADY_EXISTS')
  await refused(client.submit('no spaces, please', null, { tx: db }), 'INVALID_TASK')
  await refused(client.submit('brew', 10n as never, { tx: db }), 'INVALID_TASK')
  expect(db.isTransaction).toBe(true)
  const kept = await client.submit('brew', null, { tx: db })
  db.exec('commit')
  expect(orders()).toEqual(['tea'])
  expect((await client.get(kept.id)).status).toBe('pending')
  expect(await total(client)).toBe(2)
})

test('a savepoint of the caller can take a submit back and leave the rest', async () => {
  const { client, db } = await begin()
  db.exec('begin immediate')
  const kept = await client.submit('brew', 'kept', { tx: db })
  db.exec('savepoint mine')
  const dropped = await client.submit('brew', 'dropped', { tx: db })
  db.exec('rollback to mine; release mine; commit')
  expect((await client.get(kept.id)).input).toBe('kept')
  await refused(client.get(dropped.id), 'TASK_NOT_FOUND')
  expect(await total(client)).toBe(1)
})

test('without an open transaction, on another file, in memory, or on no database at all, tx is refused', async () => {
  const { client, db, folder } = await begin()
  await refused(client.submit('brew', null, { tx: db }), 'INVALID_OPTION')

  const elsewhere = new DatabaseSync(join(folder, 'other.db'))
  const inMemory = new DatabaseSync(':memory:')
  for (const other of [elsewhere, inMemory]) {
    other.exec('begin immediate')
    await refused(client.submit('brew', null, { tx: other }), 'INVALID_OPTION')
    expect(other.isTransaction).toBe(true)
    other.close()
  }
  await refused(client.submit('brew', null, { tx: {} as never }), 'INVALID_OPTION')
  await refused(client.submit('brew', null, { tx: null as never }), 'INVALID_OPTION')
  expect(await total(client)).toBe(0)
})

test('the store of another client is another store, also when it has the same tables', async () => {
  const { client, folder } = await begin()
  const other = await connect(`sqlite:${folder}/second.db`, { logger: silentLogger })
  const db = new DatabaseSync(join(folder, 'second.db'))
  db.exec('begin immediate')
  await refused(client.submit('brew', null, { tx: db }), 'INVALID_OPTION')
  const { id } = await other.submit('brew', null, { tx: db })
  db.exec('commit')
  expect((await other.get(id)).status).toBe('pending')
  db.close()
  await other.close()
})

test('a schema that validates asynchronously is refused, because the transaction would be over by then', async () => {
  const { client, db } = await begin()
  const slow = defineTask('slow', { input: z.string().refine(async () => true) })
  db.exec('begin immediate')
  await refused(client.submit(slow, 'x', { tx: db }), 'INVALID_OPTION')
  db.exec('commit')
  expect(await total(client)).toBe(0)
})

test('a store without transactions refuses tx', async () => {
  const { db } = await begin()
  await using memory = await connect('memory:', { logger: silentLogger })
  db.exec('begin immediate')
  await refused(memory.submit('brew', null, { tx: db }), 'INVALID_OPTION')
  db.exec('rollback')
})

test('a key lives by the time of the store, also where the clock of this machine was set back', async () => {
  const { client, db } = await begin()
  const first = await client.submit('brew', 1, { idempotencyKey: 'tea', idempotencyTtl: '3m' })
  await client.cancel(first.id)
  await client.prune({ olderThan: 0, status: 'cancelled' })
  // Another process has used the file some minutes ahead of this one.
  db.prepare(`insert or replace into holdfast_meta (name, value) values ('high_water', ?)`).run(
    String(Date.now() + 300_000),
  )
  db.exec('begin immediate')
  const second = await client.submit('brew', 1, { idempotencyKey: 'tea', tx: db })
  db.exec('commit')
  expect(second.id).not.toBe(first.id)
})
