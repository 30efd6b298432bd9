/** What `doctor` finds out about a bucket: rules that would delete live tasks, versions that pile up. */
import { PutBucketLifecycleConfigurationCommand, PutBucketVersioningCommand, S3Client } from '@aws-sdk/client-s3'
import { expect, onTestFinished, test } from 'vitest'
import { connect, silentLogger } from '../../../src/index.ts'
import { makeBucket } from '../../servers/s3.ts'
import { addressOf, credentialsOf, freshPrefix } from '../setup.ts'
import { onS3 } from './setup.ts'

onS3('the examination of a bucket', (target) => {
  /** A bucket of its own, in which settings can be changed. */
  const begin = async () => {
    const own = { ...target, bucket: freshPrefix() }
    await makeBucket(own)
    const admin = new S3Client({
      endpoint: own.endpoint,
      region: own.region,
      credentials: credentialsOf(own),
      forcePathStyle: true,
    })
    const client = await connect(addressOf(own, 'jobs'), { create: true, logger: silentLogger })
    onTestFinished(async () => {
      await client.close()
      admin.destroy()
    })
    const found = async (check: string) => (await client.examine()).filter((finding) => finding.check === check)
    const rule = (prefix: string, more: object) =>
      admin.send(
        new PutBucketLifecycleConfigurationCommand({
          Bucket: own.bucket,
          LifecycleConfiguration: { Rules: [{ ID: 'tidy', Status: 'Enabled', Filter: { Prefix: prefix }, ...more }] },
        }),
      )
    const version = () =>
      admin.send(new PutBucketVersioningCommand({ Bucket: own.bucket, VersioningConfiguration: { Status: 'Enabled' } }))
    return { client, found, rule, version }
  }

  test('finds nothing wrong with a plain bucket', async () => {
    const { client } = await begin()
    const findings = await client.examine()
    expect(findings.filter(({ verdict }) => verdict !== 'ok')).toEqual([])
    expect(findings.map(({ check }) => check)).toEqual(expect.arrayContaining(['conditional-writes', 'versions']))
  })

  test('reports a rule that would delete live tasks, over them or around them, and no other', async () => {
    const { found, rule } = await begin()
    const expiry = { Expiration: { Days: 30 } }
    await rule('elsewhere/', expiry)
    expect(await found('durability')).toMatchObject([{ verdict: 'ok' }])
    for (const prefix of ['', 'jobs/', 'jobs/tasks/']) {
      await rule(prefix, expiry)
      expect(await found('durability')).toMatchObject([{ verdict: 'problem', found: expect.stringContaining('tidy') }])
    }
  })

  test('[U13] reports old versions that nothing takes away, and works on such a bucket all the same', async () => {
    const { client, found, rule, version } = await begin()
    await version()
    expect(await found('versions')).toMatchObject([{ verdict: 'warning' }])
    await rule('jobs/', { NoncurrentVersionExpiration: { NoncurrentDays: 1 } })
    expect(await found('versions')).toMatchObject([{ verdict: 'ok' }])
    const worker = client.worker().handle('a', async () => 'done')
    worker.start()
    const submitted = await client.submit('a', 0, { idempotencyKey: 'k' })
    expect(await client.wait(submitted)).toBe('done')
    await worker.stop()
  })

  test('finds out when a setting of the bucket has taken the conditions away, and no client can connect from then on', async () => {
    const { client, found, version } = await begin()
    expect(await found('conditional-writes')).toMatchObject([{ verdict: 'ok' }])
    await version()
    const [finding] = await found('conditional-writes')
    // A server of yours may honour conditions with versions as well.
    if (process.env['HOLDFAST_TEST_S3_URL'] !== undefined && finding!.verdict === 'ok') return
    expect(finding).toMatchObject({ verdict: 'problem', found: expect.stringContaining('writers at once') })
    await expect(
      connect(client.address.replace(/ \((.*)\)/, '?endpoint=$1'), { logger: silentLogger }),
    ).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })
})
