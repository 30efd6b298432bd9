/** What a server says, as Holdfast's codes: never "gone" because a right is missing, a token has expired or a clock is off. */
import { expect, onTestFinished, test } from 'vitest'
import { CODES } from '../../src/core/errors.ts'
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
  [{ status: 501, code: 'NotImplemented' }, 'INVALID_OPTION'],
  [{ status: 400, code: 'KMS.DisabledException' }, 'STORE_REFUSED'],
  [{ status: 400, code: 'InvalidRequest' }, 'STORE_REFUSED'],
  [{ status: 403, code: 'InvalidObjectState' }, 'STORE_REFUSED'],
  [{ status: 400, code: 'EntityTooLarge' }, 'PAYLOAD_TOO_LARGE'],
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

const messageOf = async (manners: StubManners): Promise<string> => {
  const { stub, calls } = await begin()
  stub.manners = manners
  return calls.create().then(
    () => 'answered',
    (error: unknown) => String(error),
  )
}

test("a refusal has the server's own words", async () => {
  const message = 'arn:aws:kms:eu-north-1:1:key/k is disabled.'
  expect(await messageOf({ status: 400, code: 'KMS.DisabledException', message })).toContain(message)
})

test('the right that is missing is named, also where it is one to the key of an encrypted bucket', async () => {
  const denied = { status: 403, code: 'AccessDenied' }
  expect(await messageOf(denied)).toContain('this needs the right to s3:PutObject')
  const message = 'User is not authorized to perform: kms:GenerateDataKey on the resource'
  expect(await messageOf({ ...denied, message })).toContain('this needs the right to kms:GenerateDataKey')
})

test('no advice on a missing right speaks of files', () => {
  expect(CODES.STORE_READ_ONLY.fix).not.toMatch(/owner|folder/)
})

test('a key that is written too often says nothing about the load of the server', async () => {
  const { stub, calls } = await begin()
  stub.manners = { status: 429, code: 'TooManyRequests' }
  await expect(calls.update()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', details: { isConflict: true } })
})

test('a delete of many keys that is denied for each of them is a missing right, not a server that is away', async () => {
  const { stub, calls } = await begin()
  stub.manners = { keepsAll: true }
  await expect(calls['delete of many']()).rejects.toMatchObject({
    code: 'STORE_READ_ONLY',
    details: { right: 's3:DeleteObject' },
  })
})
