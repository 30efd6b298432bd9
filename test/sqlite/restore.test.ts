/** A backup that is restored into a file in use, as `.restore` of the sqlite3 shell does it: living processes stop. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test, vi } from 'vitest'
import { type Client, connect, silentLogger } from '../../src/index.ts'

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
