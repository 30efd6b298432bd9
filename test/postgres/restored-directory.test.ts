/** A server that comes back with an older data directory, as after a restored backup: no (task, fence) pair is handed out twice. */
import { spawnSync } from 'node:child_process'
import { expect, onTestFinished, test, vi } from 'vitest'
import { type Client, connect, silentLogger } from '../../src/index.ts'
import { startPostgres } from '../servers/postgres.ts'
import { runSql } from '../servers/schemas.ts'
import { onPostgres } from './setup.ts'

const TASKS = 20

/** Keeps owners: the server runs as another user than the tests. */
const run = (command: string, ...args: string[]): void => {
  const { status, stderr } = spawnSync(command, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command}: ${stderr}`)
}

/** Fences by task. */
const claimAll = async (client: Client, workerId: string): Promise<readonly string[]> => {
  const leases = await client.claimMany({ workerId, limit: TASKS })
  return leases.map(({ task, fence }) => `${task.id} ${fence}`)
}

onPostgres('a data directory that was put back', () => {
  test('stops a living process, and what is claimed after it was accepted has fences of its own', {
    timeout: 120_000,
  }, async () => {
    const server = await startPostgres()
    onTestFinished(() => server.remove())
    const copy = `${server.data}-of-yesterday`
    const open = async (): Promise<Client> => {
      const client = await connect(server.url, { create: true, logger: silentLogger })
      onTestFinished(() => client.close().catch(() => {}))
      return client
    }
    const epoch = async (): Promise<number> =>
      Number((await runSql(server.url, `select value from holdfast.meta where name = 'epoch'`))[0]!['value'])

    const living = await open()
    await living.submitMany(Array.from({ length: TASKS }, () => ({ type: 'work', input: null })))
    await server.stop()
    run('cp', '-a', server.data, copy)
    await server.start()
    const before = await epoch()
    const claimed = await claimAll(living, 'first')
    expect(claimed).toHaveLength(TASKS)
    await vi.waitFor(
      async () => {
        await living.submit('other', null)
        expect(await epoch()).toBeGreaterThan(before)
      },
      { timeout: 60_000, interval: 500 },
    )

    await server.stop()
    run('rm', '-r', server.data)
    run('mv', copy, server.data)
    await server.start()
    await vi.waitFor(
      async () => {
        await expect(claimAll(living, 'second')).rejects.toMatchObject({ code: 'STORE_IDENTITY_CHANGED' })
      },
      { timeout: 60_000, interval: 500 },
    )

    const operator = await open()
    expect((await operator.count({ status: 'pending' })).count, 'nothing was handed out again').toBe(TASKS)
    expect(await operator.acceptRestore()).toBeGreaterThan(0)
    const again = await claimAll(await open(), 'third')
    expect(again).toHaveLength(TASKS)
    expect(new Set([...claimed, ...again]).size, 'no pair twice').toBe(2 * TASKS)
  })
})
