/** The policies of docs/stores/s3.md on a real gateway, which checks them by itself. */
import { PutBucketPolicyCommand, S3Client } from '@aws-sdk/client-s3'
import { expect, onTestFinished, test } from 'vitest'
import { type Client, connect, silentLogger } from '../../../src/index.ts'
import { s3Target, startS3 } from '../../servers/s3.ts'
import { bucketPolicy } from '../policies.ts'
import { addressOf, credentialsOf } from '../setup.ts'
import { onS3 } from './setup.ts'

onS3('the policies to paste, on a gateway', () => {
  test('let a worker work, a producer submit, and an observer look, and nothing else', async () => {
    const server = await startS3()
    onTestFinished(() => server.remove())
    const target = s3Target(server.url)
    const open = async (keys: { accessKeyId: string; secretAccessKey: string }, create = false): Promise<Client> => {
      const client = await connect(addressOf(target, 'jobs'), {
        create,
        logger: silentLogger,
        s3: { credentials: keys },
      })
      onTestFinished(() => client.close())
      return client
    }
    const roles = ['worker', 'producer', 'observer'] as const
    const keys = await Promise.all(roles.map((role) => server.addUser(role)))
    await open(credentialsOf(target), true)
    const denied = await open(credentialsOf(keys[0]!)).catch((error: unknown) => error)
    expect(denied).toMatchObject({ code: 'STORE_READ_ONLY' })
    const admin = new S3Client({
      endpoint: target.endpoint,
      region: target.region,
      credentials: credentialsOf(target),
      forcePathStyle: true,
    })
    onTestFinished(() => admin.destroy())
    const policy = { Bucket: target.bucket, Policy: bucketPolicy(target.bucket, roles) }
    await admin.send(new PutBucketPolicyCommand(policy))
    const [working, producing, observing] = await Promise.all(keys.map((own) => open(credentialsOf(own))))
    const worker = working!.worker().handle('a', async (input) => input)
    worker.start()
    const task = await producing!.submit('a', 1, { idempotencyKey: 'one' })
    expect(await producing!.wait(task, { timeout: '20s' })).toBe(1)
    const later = await producing!.submit('a', 2, { delay: '1h' })
    await working!.cancel(later.id)
    await working!.delete(later.id)
    await worker.stop()
    expect((await observing!.list()).tasks).toHaveLength(1)
    expect((await observing!.why(task.id)).sentence).toContain('completed')
    await expect(observing!.submit('a', 1)).rejects.toMatchObject({
      code: 'STORE_READ_ONLY',
      message: expect.stringContaining('s3:PutObject'),
    })
    const rights = async (client: Client) => (await client.examine()).find(({ check }) => check === 'permissions')
    expect(await rights(working!)).toMatchObject({ verdict: 'ok' })
    expect(await rights(producing!)).toMatchObject({ found: expect.stringContaining('may not s3:DeleteObject') })
    expect(await rights(observing!)).toMatchObject({
      found: expect.stringContaining('may not s3:PutObject, s3:DeleteObject'),
    })
  })
})
