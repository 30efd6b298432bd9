/** A backup that is restored into a file in use, as `.restore` of the sqlite3 shell does it: living processes stop. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test, vi } from 'vitest'
import { type Client, connect, silentLogger } from '../../src/index.ts'
import { verify } from '../../src/testing/index.ts'

const begin = () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-restore-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const path = (name: string): string => join(folder, `${name}.db`)
  return {
    open: (name: string): Promise<Client> => connect(`sqlite:${path(name)}`, { logger: silentLogger }),
    /** Page by page into the file that is there, whoever has it open. */
    copy: async (from: string, to: string): Promise<void> => {
      const source = new DatabaseSync(path(from))
      await backup(source, path(to))
      source.close()
    },
    /** As if it had been used for years. */
    age: (name: string): void => {
      const db = new DatabaseSync(path(name))
      db.exec(`insert or replace into holdfast_meta (name, value) values ('epoch', '1000000')`)
      db.close()
    },
    epoch: (name: string): number => {
      const db = new DatabaseSync(path(name))
      const row = db.prepare(`select value from holdfast_meta where name = 'epoch'`).get()
      db.close()
      return Number(row?.['value'] ?? 0)
    },
  }
}

test('another store in place of the one that is open is refused, by every call that writes', async () => {
  const { open, copy, age } = begin()
  await using client = await open('mine')
  const { id } = await client.submit('work', 1)
  await (await open('other')).close()
  age('other')
  await copy('other', 'mine')
  await expect(client.submit('work', 2)).rejects.toMatchObject({ code: 'STORE_IDENTITY_CHANGED' })
  await expect(client.cancel(id)).rejects.toMatchObject({ code: 'STORE_IDENTITY_CHANGED' })
})

test('an older state of the same store is refused: its fences would be handed out a second time', async () => {
  const { open, copy, epoch } = begin()
  await using client = await open('mine')
  await using neighbour = await open('mine')
  const { id } = await client.submit('work', 1)
  await copy('mine', 'backup')
  const before = epoch('backup')
  // It grows with the first write of each second.
  await vi.waitFor(async () => {
    await neighbour.submit('other', 1)
    await client.submit('other', 1)
    expect(epoch('mine')).toBeGreaterThan(before)
  })
  expect((await client.claim(id, { workerId: 'w' })).fence).toBe(1)
  await copy('backup', 'mine')
  for (const one of [client, neighbour])
    await expect(one.claim(id, { workerId: 'w' })).rejects.toMatchObject({ code: 'STORE_IDENTITY_CHANGED' })
  // Knowingly: fences go on where no lease of before has been.
  const operator = await open('mine')
  expect(await operator.acceptRestore()).toBeGreaterThan(0)
  await operator.close()
  await using after = await open('mine')
  expect((await after.claim(id, { workerId: 'w' })).fence).toBe(1_000_001)
})

test('a task that had ended and may run again has fences of its own too, and verify finds nothing wrong with them', async () => {
  const { open, copy } = begin()
  await using before = await open('mine')
  const { pending, ended, archived, over } = await submitOfEachKind(before)
  await copy('mine', 'backup')
  // After the backup: a claim of each that may still be claimed.
  await before.unarchive(archived)
  for (const id of [ended, archived]) await before.deadLetters.replay(id)
  const given = await Promise.all(
    [pending, ended, archived].map(async (id) => `${id} ${(await before.claim(id, { workerId: 'w' })).fence}`),
  )
  await before.close()
  await copy('backup', 'mine')
  const operator = await open('mine')
  expect(await operator.acceptRestore()).toBe(3)
  await operator.close()
  await using after = await open('mine')
  expect((await after.get(over)).attempts, 'a completed task never runs again').toBe(1)
  await after.unarchive(archived)
  for (const id of [ended, archived]) await after.deadLetters.replay(id)
  const again = await Promise.all(
    [pending, ended, archived].map(async (id) => `${id} ${(await after.claim(id, { workerId: 'w' })).fence}`),
  )
  expect(new Set([...given, ...again]).size, 'no pair twice').toBe(6)
  const { violations } = await verify(after)
  expect(violations).toBe(0)
})

/** One that waits, a dead letter, one that is archived too, and one that has completed. */
const submitOfEachKind = async (client: Client) => {
  const run = async (end: 'complete' | 'fail'): Promise<string> => {
    const { id } = await client.submit('work', 1, { maxRetries: 0 })
    const lease = await client.claim(id, { workerId: 'w' })
    if (end === 'complete') await lease.complete(1)
    else await lease.fail(new Error('no'))
    return id
  }
  const [ended, archived, over] = [await run('fail'), await run('fail'), await run('complete')]
  await client.archive(archived)
  const { id: pending } = await client.submit('work', 2)
  return { pending, ended, archived, over }
}

test('processes that use one file beside each other go on', async () => {
  const { open, epoch } = begin()
  await using client = await open('mine')
  await using neighbour = await open('mine')
  await vi.waitFor(
    async () => {
      for (const one of [client, neighbour, client]) await one.submit('work', 1)
      expect(epoch('mine')).toBeGreaterThan(3)
    },
    { timeout: 15_000 },
  )
})
