/** The file and what may be wrong with it: each refusal has its own code, and nothing is made or changed by it. */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { type Client, connect, silentLogger } from '../../src/index.ts'
import { openSqlite } from '../../src/store/sqlite/store.ts'
import { cleanUp, folder, start } from './processes.ts'
import { report } from './seed.ts'

cleanUp()

const NOBODY = 65_534
const isRoot = process.getuid?.() === 0
if (!isRoot)
  report('store file: the tests as another user are skipped, because this is not root and cannot become somebody else')

const open = (file: string, options: { create?: boolean } = {}): Promise<Client> =>
  connect(`sqlite:${file}`, { logger: silentLogger, ...options })

const makeStore = async (file: string): Promise<void> => {
  const client = await open(file)
  await client.submit('work', null)
  await client.close()
}

test('file, log and shared memory can be read by their owner only, whatever the umask says', async () => {
  const file = join(folder(), 'private.db')
  const before = process.umask(0)
  try {
    const client = await open(file)
    await client.submit('work', 'a secret')
    for (const ending of ['', '-wal', '-shm'])
      expect((statSync(file + ending).mode & 0o777).toString(8), ending).toBe('600')
    await client.close()
  } finally {
    process.umask(before)
  }
})

test('a missing file is STORE_NOT_FOUND when it is not to be made, and is not made', async () => {
  const place = folder()
  await expect(open(join(place, 'missing.db'), { create: false })).rejects.toMatchObject({ code: 'STORE_NOT_FOUND' })
  await expect(open(join(place, 'no such folder', 'missing.db'), { create: false })).rejects.toMatchObject({
    code: 'STORE_NOT_FOUND',
  })
  expect(readdirSync(place)).toEqual([])
})

test('a newer schema is SCHEMA_NEWER, and the file stays as it was', async () => {
  const file = join(folder(), 'newer.db')
  await makeStore(file)
  const db = new DatabaseSync(file)
  db.exec(`update holdfast_meta set value = '99' where name = 'schema_version'`)
  db.close()
  const before = readFileSync(file)
  await expect(open(file)).rejects.toMatchObject({ code: 'SCHEMA_NEWER', details: { found: 99 } })
  expect(readFileSync(file).equals(before)).toBe(true)
})

test("an application's own database becomes a store too, and keeps its tables", async () => {
  const file = join(folder(), 'app.db')
  const db = new DatabaseSync(file)
  db.exec(`create table orders (name text); insert into orders values ('tea')`)
  await makeStore(file)
  expect(db.prepare('select name from orders').get()).toEqual({ name: 'tea' })
  db.close()
})

/** Deletes the file, or puts another store in its place, while `use` has it open. */
const vanish = async (
  how: 'deleted' | 'replaced',
  use: (client: Client, vanishing: () => void) => Promise<void>,
): Promise<string> => {
  const place = folder()
  const file = join(place, 'here.db')
  const other = join(place, 'other.db')
  await makeStore(other)
  const client = await open(file)
  await client.submit('work', null)
  await use(client, () => {
    for (const ending of ['', '-wal', '-shm']) rmSync(file + ending, { force: true })
    if (how === 'replaced') renameSync(other, file)
  })
  await client.close()
  return file
}

for (const how of ['deleted', 'replaced'] as const) {
  test(`a file that is ${how} while it is open is STORE_IDENTITY_CHANGED, for good`, async () => {
    const file = await vanish(how, async (client, vanishing) => {
      vanishing()
      await expect(client.submit('work', null)).rejects.toMatchObject({ code: 'STORE_IDENTITY_CHANGED' })
      await expect(client.list()).rejects.toMatchObject({ code: 'STORE_IDENTITY_CHANGED' })
      await expect(client.submit('work', null)).rejects.toMatchObject({ code: 'STORE_IDENTITY_CHANGED' })
    })
    expect(existsSync(file)).toBe(how === 'replaced')
  })

  test(`a running worker stops with that error when the file is ${how}`, async () => {
    await vanish(how, async (client, vanishing) => {
      const worker = client.worker().handle('work', () => null)
      const running = worker.run({ signals: false })
      await client.waitForEnd((await client.list()).tasks[0]!.id)
      vanishing()
      await expect(running).rejects.toMatchObject({ code: 'STORE_IDENTITY_CHANGED' })
    })
  })
}

test('without that check a write to a deleted file would succeed and be lost', () => {
  const file = join(folder(), 'bare.db')
  const db = new DatabaseSync(file)
  db.exec('pragma journal_mode = wal; create table task (input text)')
  for (const ending of ['', '-wal', '-shm']) rmSync(file + ending, { force: true })
  expect(db.prepare(`insert into task values ('lost')`).run().changes).toBe(1)
  db.close()
})

const openAsNobody = async (file: string): Promise<string> => {
  const child = start('opener', { file, uid: NOBODY })
  await child.end()
  const { code } = child.said('refused')[0] ?? { code: 'opened' }
  return String(code)
}

test.skipIf(!isRoot)(
  'a file or folder that may not be written is STORE_READ_ONLY, and nothing is left in it',
  async () => {
    const place = folder()
    chmodSync(place, 0o755)
    const made = join(place, 'made.db')
    await makeStore(made)
    const files = readdirSync(place)
    const codes: Record<string, string> = {}
    chmodSync(made, 0o444)
    codes['a file that may be read'] = await openAsNobody(made)
    chmodSync(made, 0o666)
    codes['a file in a folder that may not be written'] = await openAsNobody(made)
    chmodSync(made, 0o600)
    codes['a file that may not be read'] = await openAsNobody(made)
    codes['a folder that may not be written'] = await openAsNobody(join(place, 'new.db'))
    expect(await openAsNobody(join(place, 'new', 'new.db')), 'folders are not made').toBe('STORE_NOT_FOUND')
    expect(readdirSync(place)).toEqual(files)
    const secret = join(place, 'secret')
    mkdirSync(secret, { mode: 0o700 })
    codes['a folder that may not be entered'] = await openAsNobody(join(secret, 'new.db'))
    expect(codes).toEqual(Object.fromEntries(Object.keys(codes).map((what) => [what, 'STORE_READ_ONLY'])))
  },
)

test.skipIf(!isRoot)('the same opener succeeds where it may write', async () => {
  const place = folder()
  chmodSync(place, 0o777)
  expect(await openAsNobody(join(place, 'new.db'))).toBe('opened')
})

test('a lock that another process keeps for longer than ten seconds is STORE_BUSY, and the store works afterwards', async () => {
  const file = join(folder(), 'busy.db')
  await makeStore(file)
  const store = await openSqlite(file)
  const holder = start('lock-holder', { file, holds: 11_000 })
  await holder.heard('locked')
  const begun = performance.now()
  await expect(store.documents.put('a', '{}', 0)).rejects.toMatchObject({ code: 'STORE_BUSY' })
  const waited = performance.now() - begun
  expect(waited).toBeGreaterThan(9_000)
  expect(waited).toBeLessThan(11_000)
  expect(await store.documents.list('')).toBeDefined()
  await holder.heard('unlocked')
  expect(await store.documents.put('a', '{}', 0)).toBe(1)
  await store.close()
})
