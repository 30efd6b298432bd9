/** The time of a SQLite file is its host's: a process whose clock was wrong does not set it for all that come after. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Client, connect, type Logger, silentLogger } from '../../src/index.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { StoreTime } from '../../src/runtime/store-time.ts'
import { HostClock } from '../../src/store/sqlite/file/clock.ts'
import type { Store } from '../../src/store/store.ts'

const MINUTE = 60_000
const TEN_YEARS = 3_652 * 86_400_000

describe('the clock of a file', () => {
  const shown = (mark: number, ...host: number[]): number[] => {
    let at = host[0]!
    const clock = new HostClock(mark, () => at)
    return host.map((next) => {
      at = next
      return clock.now()
    })
  }
  const near = (found: readonly number[], wanted: readonly number[]): void => {
    for (const [i, at] of found.entries()) expect(Math.abs(at - wanted[i]!)).toBeLessThan(1_000)
  }
  const now = Date.UTC(2026, 10, 16)

  test('does not go back by minutes, neither while it is open nor behind what was used before', () => {
    near(shown(0, now, now - 5 * MINUTE, now + MINUTE), [now, now, now + MINUTE])
    near(shown(now + 5 * MINUTE, now), [now + 5 * MINUTE])
  })

  test('does not believe a time that is further ahead of the host', () => {
    near(shown(now + TEN_YEARS, now), [now])
    near(shown(0, now, now + TEN_YEARS, now), [now, now + TEN_YEARS, now])
  })

  test('believes what was used before where the host was never set', () => {
    near(shown(now, 1_000), [now])
  })

  test('is followed by the client in the same way', async () => {
    let at = now
    const store = { capabilities: new Set(['host-clock']), now: async () => ({ at, uncertainty: 0 }) }
    const time = new StoreTime(store as unknown as Store, { ...systemClock, wall: () => at })
    await time.anchor()
    const seen = [0, -5 * MINUTE, TEN_YEARS, 0].map((by) => {
      at = now + by
      return time.now()
    })
    near(seen, [now, now, now + TEN_YEARS, now])
  })
})

const begin = () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-clock-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'holdfast.db')
  return {
    connect: (options = {}): Promise<Client> => connect(`sqlite:${path}`, { logger: silentLogger, ...options }),
    async inTransaction<T>(submit: (tx: DatabaseSync) => Promise<T>): Promise<T> {
      const db = new DatabaseSync(path)
      db.exec('begin immediate')
      const submitted = await submit(db)
      db.exec('commit')
      db.close()
      return submitted
    },
    sql(...statements: string[]): void {
      const db = new DatabaseSync(path)
      for (const statement of statements) db.exec(statement)
      db.close()
    },
  }
}

describe('a file that was used by a process in another decade', () => {
  const mark = Date.now() + TEN_YEARS
  const poison = [
    `insert or replace into holdfast_meta (name, value) values ('high_water', '${mark}')`,
    `insert or replace into holdfast_meta (name, value) values ('high_water_by', 'there/7')`,
  ]
  const clockOf = async (client: Client) =>
    (await client.examine()).filter(({ check }) => check === 'clock' || check === 'clock-mark')

  test('is used by the time of this machine, and every process says whose clock was wrong', async () => {
    const { connect: open, sql, inTransaction } = begin()
    await (await open()).close()
    sql(...poison)
    for (const round of [1, 2]) {
      const warnings: string[] = []
      const logger: Logger = { ...silentLogger, warn: (text) => void warnings.push(text) }
      await using client = await open({ logger })
      expect(Math.abs((await client.now()) - Date.now()), `process ${round}`).toBeLessThan(MINUTE)
      const { id } = await client.submit('work', null, { delay: '1h' })
      expect((await client.get(id)).availableAt - Date.now()).toBeLessThan(3_600_001)
      const joined = await inTransaction((tx) => client.submit('work', null, { tx }))
      expect((await client.get(joined.id)).createdAt - Date.now()).toBeLessThan(MINUTE)
      expect(warnings).toEqual([expect.stringMatching(/there\/7 has used it with a clock that showed 20\d\d-/)])
      expect(await clockOf(client)).toEqual([
        expect.objectContaining({
          check: 'clock-mark',
          verdict: 'problem',
          found: expect.stringMatching(/^there\/7 .* ahead of this machine's; 0 tasks and 0 leases/),
          fix: expect.stringContaining('holdfast doctor --repair-clock'),
        }),
      ])
    }
  })

  test('is repaired: waits, leases and schedules of that process count from now', async () => {
    const { connect: open, sql } = begin()
    const wrong = await open({ clock: { ...systemClock, wall: () => Date.now() + TEN_YEARS } })
    const soon = await wrong.submit('soon', null, { delay: '1h', ttl: '2h' })
    const now = await wrong.submit('now', null)
    await wrong.schedules.create({ id: 'tick', type: 'tick', input: null, every: '1h' })
    await wrong.close()
    await using client = await open()
    const held = await client.submit('held', null)
    await client.claim(held.id, { workerId: 'dead' })
    const other = await client.submit('other', null, { delay: '400d' })
    const before = await client.get(other.id)
    sql(
      ...poison,
      `update holdfast_task set lease_expires_at = lease_expires_at + ${TEN_YEARS} where status = 'running'`,
    )
    expect((await clockOf(client))[0]!.found).toContain('2 tasks and 1 leases')
    expect(await client.repairClock()).toEqual({ tasks: 2, leases: 1, schedules: 1 })
    const at = Date.now()
    const after = await client.get(soon.id)
    expect(Math.abs(after.availableAt - at - 3_600_000)).toBeLessThan(MINUTE)
    expect(Math.abs(after.expiresAt! - at - 7_200_000)).toBeLessThan(MINUTE)
    expect((await client.get(now.id)).availableAt).toBeLessThanOrEqual(at)
    expect((await client.get(held.id)).lease!.expiresAt - at).toBeLessThan(MINUTE)
    expect((await client.schedules.next('tick', 1))[0]! - at).toBeLessThanOrEqual(3_600_001)
    expect(JSON.stringify(await client.get(other.id)), 'what was dated right stays').toBe(JSON.stringify(before))
    expect(await clockOf(client)).toEqual([expect.objectContaining({ check: 'clock', verdict: 'ok' })])
  })

  test('has nothing to repair where the store has a clock of its own', async () => {
    await using memory = await connect('memory:', { logger: silentLogger })
    await expect(memory.repairClock()).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })
})
