/** A user whose permission to write is taken away for a while. */
import { writeFileSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { type Client, connect, silentLogger } from '../../src/index.ts'
import { keepsResultsWhileReadOnly } from '../read-only-scene.ts'
import { startNats } from '../servers/nats.ts'
import { onNats } from './setup.ts'

onNats('while a user may not write for longer than a lease', () => {
  test('no result is lost, and no task is taken from its worker', { timeout: 120_000 }, async () => {
    const server = await startNats({ hasUsers: true })
    onTestFinished(() => server.remove())
    const open = async (): Promise<Client> => {
      const address = `${server.url}/jobs`.replace('//', '//writer:writer@')
      const client = await connect(address, { create: true, logger: silentLogger })
      onTestFinished(() => client.close())
      return client
    }
    const [client, other] = [await open(), await open()]
    const refused = server.settingsText.replace(
      'password: writer }',
      'password: writer, permissions: { publish: { deny: "$KV.>" } } }',
    )
    expect(refused).not.toBe(server.settingsText)
    const readOnly = async (is: boolean): Promise<void> => {
      writeFileSync(server.settings, is ? refused : server.settingsText)
      process.kill(server.pid, 'SIGHUP')
    }
    await keepsResultsWhileReadOnly({ client, other, lease: 3_000, readOnly })
  })
})
