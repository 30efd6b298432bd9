/** What a server says, as Holdfast's codes: never "gone" because a right is missing, a token has expired or a clock is off. */
import { expect, onTestFinished, test } from 'vitest'
import { parseAddress } from '../../src/store/s3/address.ts'
import { loadDriver } from '../../src/store/s3/client.ts'
import { S3KeyValue } from '../../src/store/s3/key-value.ts'
import { type StubManners, startStub } from './stub-server.ts'

const begin = async () => {
  const stub = await startStub()
  const kv = new S3KeyValue(await loadDriver(), parseAddress(`s3://bucket/jobs?endpoint=${stub.endpoint}`), {
    credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
    requestTimeout: 1_000,
  })
  onTestFinished(async () => {
    await kv.close()
    await stub.close()
  })
  const mark = await kv.create('there', 'one')
  const calls = {
    get: () => kv.get('there'),
    create: () => kv.create('new', 'x'),
    update: () => kv.update('there', 'two', mark!),
    delete: () => kv.delete(['there']),
    'delete of many': () => kv.delete(['there', 'other']),
    list: () => kv.list('', { limit: 10 }),
  }
  return { stub, kv, calls }
}

const answers: readonly (readonly [manners: StubManners, code: string])[] = [
  [{ status: 403, code: 'AccessDenied' }, 'STORE_READ_ONLY'],
  [{ status: 403, code: 'InvalidAccessKeyId' }, 'INVALID_OPTION'],
  [{ status: 403, code: 'SignatureDoesNotMatch' }, 'INVALID_OPTION'],
  [{ status: 400, code: 'ExpiredToken' }, 'STORE_UNAVAILABLE'],
  [{ status: 403, code: 'RequestTimeTooSkewed' }, 'STORE_UNAVAILABLE'],
  [{ status: 403, code: 'QuotaExceeded' }, 'STORE_FULL'],
  [{ status: 404, code: 'NoSuchBucket' }, 'STORE_NOT_FOUND'],
  [{ status: 429, code: 'TooManyRequests' }, 'STORE_UNAVAILABLE'],
  [{ status: 500, code: 'InternalError' }, 'STORE_UNAVAILABLE'],
  [{ status: 503, code: 'SlowDown' }, 'STORE_UNAVAILABLE'],
]

test.each(answers)('%o is %s, whatever was asked', async (manners, code) => {
  const { stub, calls } = await begin()
  stub.manners = manners
  for (const [name, call] of Object.entries(calls)) {
    const error = await call().then(
      (answer) => `answered ${JSON.stringify(answer)}`,
      (thrown: unknown) => thrown,
    )
    expect(error, name).toMatchObject({ code })
  }
})

test('a conflict is no refusal: it may be asked again', async () => {
  const { stub, calls } = await begin()
  stub.manners = { status: 409, code: 'ConditionalRequestConflict' }
  for (const call of [calls.create, calls.update])
    await expect(call()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', details: { isConflict: true } })
})

test('a condition that does not hold and a key that is not there are answers, not errors', async () => {
  const { kv } = await begin()
  expect(await kv.get('nothing')).toBeNull()
  expect(await kv.create('there', 'two')).toBeNull()
  expect(await kv.update('there', 'two', '"stale"')).toBeNull()
  expect(await kv.update('nothing', 'two', '"any"')).toBeNull()
  await kv.delete(['nothing'])
})

test('a server that is not there is STORE_UNAVAILABLE', async () => {
  const { stub, calls } = await begin()
  await stub.close()
  await expect(calls.get()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  await expect(calls.update()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
})
