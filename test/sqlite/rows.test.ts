/** What a SQLite file holds beside the contract: keys that outlive their tasks, and rows that somebody has damaged. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Client, connect, silentLogger } from '../../src/index.ts'

let folder: string
let client: Client
let db: DatabaseSync

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-rows-'))
  client = await connect(`sqlite:${join(folder, 'q.db')}`, { logger: silentLogger })
  db = new DatabaseSync(join(folder, 'q.db'), { timeout: 1_000 })
})

afterEach(async () => {
  db.close()
  await client.close()
  rmSync(folder, { recursive: true })
})

const keys = (): number => db.prepare('select count(*) as n from holdfast_key').get()?.['n'] as number

describe('the SQLite file', () => {
  it('forgets a key once its task was pruned and its own time is over', async () => {
    const task = await client.submit('a', 1, { idempotencyKey: 'k' })
    await client.cancel(task.id)
    expect(await client.prune({ olderThan: 0 })).toBe(1)
    expect(keys()).toBe(1)
    db.exec(`update holdfast_key set expires_at = 1; update holdfast_meta set value = '0' where name = 'high_water'`)
    // Housekeeping rides on the first write of a second: another process makes that second begin anew.
    const other = await connect(client.address, { logger: silentLogger })
    await other.submit('a', 2)
    await other.close()
    expect(keys()).toBe(0)
  })

  it('[M4] buries a task whose stored input was damaged, and runs the others', async () => {
    const bad = await client.submit('a', { fine: true })
    const good = await client.submit('a', { fine: true })
    db.prepare(
      `update holdfast_task set input = '{"fine":', options = 'no json', history = 'neither' where id = ?`,
    ).run(bad.id)
    await client
      .worker()
      .handle('a', () => 'ran')
      .drain()
    expect(await client.wait(good)).toBe('ran')
    const buried = await client.get(bad.id)
    expect(buried.status).toBe('failed')
    expect(buried.lastError?.message).toMatch(/the stored input cannot be read/)
    expect((await client.list({ status: 'dead' })).tasks.map(({ id }) => id)).toEqual([bad.id])
  })
})
