/** A server that comes back with an older state of the store: living processes stop instead of handing out fences again. */
import { expect, test, vi } from 'vitest'
import type { Executor } from '../../src/store/postgres/connection.ts'
import { IdentityGuard } from '../../src/store/postgres/identity.ts'
import { SCHEMA_VERSION } from '../../src/store/postgres/schema.ts'
import { begin, onPostgres } from './setup.ts'

test('a check whose answer arrives after another one has seen the epoch grow is no restore', async () => {
  let epoch = 5
  const [asked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const executor = (answering?: Promise<void>): Executor => ({
    async query(text) {
      if (text.startsWith('insert')) return [[String(++epoch)]]
      if (!text.includes("'identity'")) return [[String(SCHEMA_VERSION)]]
      const rows = [
        ['identity', 'a-store'],
        ['epoch', String(epoch)],
      ]
      if (answering !== undefined) asked.resolve()
      await answering
      return rows
    },
    script: async () => {},
  })
  const guard = new IdentityGuard('holdfast')
  await guard.expect(executor())
  const late = guard.check(executor(answered.promise))
  await asked.promise
  // Another process uses the store, and another connection of this one sees it.
  epoch++
  await guard.check(executor())
  answered.resolve()
  await expect(late).resolves.toBeUndefined()
  // What is asked from now on must know it.
  epoch -= 2
  await expect(guard.check(executor())).rejects.toMatchObject({ code: 'STORE_IDENTITY_CHANGED' })
})

onPostgres('a store that went back to an older state', (url) => {
  const ended = (schema: string): string =>
    `select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'holdfast%' and query like '%${schema}%' and pid <> pg_backend_pid()`

  test('is refused at the next contact, and can be accepted knowingly', async () => {
    const { schema, sql, connect } = begin(url)
    const client = await connect()
    const { id } = await client.submit('work', 1)
    expect((await client.claim(id, { workerId: 'w' })).fence).toBe(1)
    // Dead, and dead and archived: both may be replayed, as they may have been after the backup.
    const dead: string[] = []
    for (let n = 0; n < 2; n++) {
      const lease = await client.claim((await client.submit('work', 1, { maxRetries: 0 })).id, { workerId: 'w' })
      dead.push((await lease.fail(new Error('no'))).id)
    }
    await client.archive(dead[1]!)
    // As in a data directory of some minutes ago.
    await sql(
      `update ${schema}.meta set value = '0' where name = 'epoch'`,
      `update ${schema}.task set status = 'pending', attempts = 0, revision = 1, lease_token = null, lease_expires_at = null where id = '${id}'`,
      ended(schema),
    )
    // A connection that was not ended notices within five seconds, and submits until then.
    let accepted = 0
    const other = async (): Promise<void> => {
      await client.submit('other', 1)
      accepted++
    }
    await vi.waitFor(
      async () => {
        await expect(other()).rejects.toMatchObject({ code: 'STORE_IDENTITY_CHANGED' })
      },
      { timeout: 20_000, interval: 500 },
    )
    await expect(client.claim(id, { workerId: 'w' })).rejects.toMatchObject({ code: 'STORE_IDENTITY_CHANGED' })
    const operator = await connect()
    expect(await operator.acceptRestore()).toBe(3 + accepted)
    await operator.close()
    const after = await connect()
    expect((await after.claim(id, { workerId: 'w' })).fence).toBe(1_000_001)
    await after.unarchive(dead[1]!)
    for (const one of dead) {
      await after.deadLetters.replay(one)
      expect((await after.claim(one, { workerId: 'w' })).fence).toBe(1_000_002)
    }
  })

  test('processes that connect and work beside each other go on, and the epoch grows', async () => {
    const { schema, sql, connect } = begin(url)
    const epoch = async (): Promise<number> =>
      Number((await sql(`select value from ${schema}.meta where name = 'epoch'`))[0]!['value'])
    const [one, other] = [await connect(), await connect()]
    const before = await epoch()
    expect(before).toBeGreaterThan(0)
    await vi.waitFor(
      async () => {
        await one.submit('work', 1)
        await other.submit('work', 1)
        expect(await epoch()).toBeGreaterThan(before)
      },
      { timeout: 20_000, interval: 500 },
    )
  })
})
