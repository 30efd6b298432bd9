/** A server that comes back with an older state of the store: living processes stop instead of handing out fences again. */
import { expect, test, vi } from 'vitest'
import { begin, onPostgres } from './setup.ts'

onPostgres('a store that went back to an older state', (url) => {
  const ended = (schema: string): string =>
    `select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'holdfast%' and query like '%${schema}%' and pid <> pg_backend_pid()`

  test('is refused at the next contact, and can be accepted knowingly', async () => {
    const { schema, sql, connect } = begin(url)
    const client = await connect()
    const { id } = await client.submit('work', 1)
    expect((await client.claim(id, { workerId: 'w' })).fence).toBe(1)
    // As in a data directory of some minutes ago.
    await sql(
      `update ${schema}.meta set value = '0' where name = 'epoch'`,
      `update ${schema}.task set status = 'pending', attempts = 0, revision = 1, lease_token = null, lease_expires_at = null where id = '${id}'`,
      ended(schema),
    )
    await vi.waitFor(
      async () => {
        await expect(client.submit('other', 1)).rejects.toMatchObject({ code: 'STORE_IDENTITY_CHANGED' })
      },
      { timeout: 20_000, interval: 500 },
    )
    await expect(client.claim(id, { workerId: 'w' })).rejects.toMatchObject({ code: 'STORE_IDENTITY_CHANGED' })
    const operator = await connect()
    expect(await operator.acceptRestore()).toBeGreaterThan(0)
    await operator.close()
    const after = await connect()
    expect((await after.claim(id, { workerId: 'w' })).fence).toBe(1_000_001)
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
