/** A server that comes back with an older data directory, as after a restored backup: no (task, fence) pair is handed out twice. */
import { cpSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { type Client, connect, silentLogger } from '../../src/index.ts'
import { startNats } from '../servers/nats.ts'
import { onNats } from './setup.ts'

const TASKS = 20

/** Fences by task. */
const claimAll = async (client: Client, workerId: string): Promise<readonly string[]> => {
  const leases = []
  for (let n = 0; n < TASKS; n++) {
    const lease = await client.claimNext({ workerId, types: ['work'] })
    if (lease !== null) leases.push(lease)
  }
  return leases.map(({ task, fence }) => `${task.id} ${fence}`)
}

onNats('a data directory that was put back', () => {
  test('stops a living process, and what is claimed after it was accepted has fences of its own', {
    timeout: 120_000,
  }, async () => {
    const server = await startNats()
    onTestFinished(() => server.remove())
    const data = join(dirname(server.settings), 'jetstream')
    const copy = `${data}-of-yesterday`
    const open = async (): Promise<Client> => {
      const client = await connect(`${server.url}/restored`, { create: true, logger: silentLogger })
      onTestFinished(() => client.close().catch(() => {}))
      return client
    }

    const living = await open()
    await living.submitMany(Array.from({ length: TASKS }, () => ({ type: 'work', input: null })))
    // Dead at the time of the backup, and replayed after it.
    const { id } = await living.submit('other', null, { maxRetries: 0 })
    await (await living.claim(id, { workerId: 'first' })).fail(new Error('no'))
    await server.stop()
    cpSync(data, copy, { recursive: true })
    await server.start()
    const claimed = [...(await claimAll(living, 'first'))]
    expect(claimed).toHaveLength(TASKS)
    await living.deadLetters.replay(id)
    claimed.push(`${id} ${(await living.claim(id, { workerId: 'first' })).fence}`)

    await server.stop()
    rmSync(data, { recursive: true })
    renameSync(copy, data)
    await server.start()
    await vi.waitFor(
      async () => {
        await expect(claimAll(living, 'second')).rejects.toMatchObject({ code: 'STORE_IDENTITY_CHANGED' })
      },
      { timeout: 30_000, interval: 500 },
    )

    const [operator, overlooked] = [await open(), await open()]
    expect((await operator.count({ status: 'pending' })).count, 'nothing was handed out again').toBe(TASKS)
    expect(await operator.acceptRestore()).toBe(TASKS + 1)
    await vi.waitFor(
      async () => {
        await expect(overlooked.now()).rejects.toMatchObject({ code: 'STORE_IDENTITY_CHANGED' })
      },
      { timeout: 30_000, interval: 500 },
    )
    const last = await open()
    const again = [...(await claimAll(last, 'third'))]
    expect(again).toHaveLength(TASKS)
    await last.deadLetters.replay(id)
    again.push(`${id} ${(await last.claim(id, { workerId: 'third' })).fence}`)
    expect(new Set([...claimed, ...again]).size, 'no pair twice').toBe(2 * TASKS + 2)
  })
})
