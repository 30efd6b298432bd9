/** What each role needs: with exactly the rights of docs/stores/s3.md, and with each of them missing. */
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Client, connect, type HoldfastError, silentLogger } from '../../../src/index.ts'
import type { Action } from '../../servers/simulated-s3/options.ts'
import { startSimulatedS3 } from '../../servers/simulated-s3/start.ts'
import { policyOf } from '../policies.ts'

const s3 = await startSimulatedS3({ latency: 0 })
afterAll(() => s3.remove())

/** One store, made by an administrator, and clients of it that may do no more than their policy says. */
const begin = async (rights: Readonly<Record<string, readonly Action[]>>) => {
  await s3.change({ rights })
  const { url, credentials } = s3.fresh()
  const open = async (by: string): Promise<Client> => {
    const client = await connect(url, {
      create: by === 'admin',
      logger: silentLogger,
      s3: { credentials: { ...credentials, accessKeyId: by } },
    })
    onTestFinished(() => client.close())
    return client
  }
  return { open, admin: await open('admin') }
}

describe('the policies to paste', () => {
  test('let a worker work, a producer submit, and an observer look', async () => {
    const { open } = await begin({
      worker: policyOf('worker'),
      producer: policyOf('producer'),
      observer: policyOf('observer'),
    })
    const [working, producing, observing] = [await open('worker'), await open('producer'), await open('observer')]
    const worker = working.worker().handle('a', async (input) => input)
    worker.start()
    const task = await producing.submit('a', 1, { idempotencyKey: 'one' })
    expect((await producing.submit('a', 1, { idempotencyKey: 'one' })).deduplicated).toBe(true)
    expect(await producing.wait(task, { timeout: '20s' })).toBe(1)
    const later = await producing.submit('a', 2, { delay: '1h' })
    await working.cancel(later.id)
    await working.delete(later.id)
    await working.schedules.create({ id: 'hourly', type: 'a', input: 3, every: '1h' })
    await working.schedules.trigger('hourly')
    await worker.stop()
    expect((await observing.get(task.id)).status).toBe('completed')
    expect((await observing.why(task.id)).sentence).toContain('completed')
    expect((await observing.list()).tasks.length).toBeGreaterThan(0)
    expect(await observing.stats()).toBeTruthy()
    await expect(observing.submit('a', 1)).rejects.toMatchObject({
      code: 'STORE_READ_ONLY',
      message: expect.stringContaining('s3:PutObject'),
    })
  })

  test('let the observer look at a store that was not proved for this address', async () => {
    const { open, admin } = await begin({ observer: policyOf('observer') })
    const { id } = await admin.submit('a', 1)
    await s3.change({ faults: [{ what: 'status', kind: 'GET', key: 'proof/', status: 404, code: 'NoSuchKey' }] })
    onTestFinished(() => s3.change({ faults: [] }))
    expect((await (await open('observer')).get(id)).input).toBe(1)
  })
})

describe('doctor', () => {
  const ALL: readonly Action[] = policyOf('worker')
  test.each(['s3:GetLifecycleConfiguration', 's3:GetBucketVersioning'] as const)(
    'warns that %s is missing, and of nothing else',
    async (action) => {
      const { open } = await begin({ poor: ALL.filter((one) => one !== action) })
      const findings = await (await open('poor')).examine()
      const [rights] = findings.filter(({ check }) => check === 'permissions')
      expect(rights).toMatchObject({ verdict: 'warning', found: expect.stringMatching(new RegExp(`may .*${action}`)) })
      expect(rights!.found.match(/s3:/g)).toHaveLength(1)
    },
  )

  const needed = ALL.slice(0, 4)
  const combinations = needed.flatMap((one, n) => needed.slice(n).map((other) => [...new Set([one, other])]))
  test.each(combinations.map((missing) => [missing.join(' and '), missing] as const))(
    'names %s when that is missing, and nothing else; where it cannot connect, that error does',
    async (_, missing) => {
      const { open } = await begin({ poor: ALL.filter((one) => !missing.includes(one)) })
      const reported = await open('poor').then(
        async (client) => (await client.examine()).find(({ check }) => check === 'permissions')!,
        (error: HoldfastError) => ({ verdict: 'problem', found: error.message.split('these credentials lack')[1]! }),
      )
      expect(reported.verdict).toBe('problem')
      expect(reported.found.match(/s3:\w+/g)!.toSorted()).toEqual(missing.toSorted())
    },
  )

  test('changes nothing to find that out', async () => {
    const { url, credentials, bucket } = s3.fresh()
    await s3.change({ rights: { poor: ['s3:PutObject', 's3:DeleteObject'] } })
    const poor = connect(url, { s3: { credentials: { ...credentials, accessKeyId: 'poor' } } })
    await expect(poor).rejects.toMatchObject({ details: { missing: ['s3:ListBucket', 's3:GetObject'] } })
    expect(await s3.objects(bucket, '')).toEqual({})
  })
})
