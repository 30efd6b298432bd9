/** Credentials whose right to write is taken away for a while. */
import { onTestFinished, test } from 'vitest'
import { type Client, connect, silentLogger } from '../../../src/index.ts'
import { keepsResultsWhileReadOnly } from '../../read-only-scene.ts'
import { startStub } from '../stub-server.ts'

test('while the bucket may only be read for longer than a lease, no result is lost, and no task is taken from its worker', {
  timeout: 120_000,
}, async () => {
  const stub = await startStub()
  onTestFinished(() => stub.close())
  const open = async (): Promise<Client> => {
    const credentials = { accessKeyId: 'id', secretAccessKey: 'secret' }
    const client = await connect(`s3://jobs/a?endpoint=${stub.endpoint}`, {
      create: true,
      logger: silentLogger,
      s3: { credentials },
    })
    onTestFinished(() => client.close())
    return client
  }
  const [client, other] = [await open(), await open()]
  const readOnly = async (is: boolean): Promise<void> => {
    stub.manners = { mayOnlyRead: is }
  }
  await keepsResultsWhileReadOnly({ client, other, lease: 5_000, readOnly })
})
