/** What the client shares between requests must not make one request like another. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { parseAddress } from '../../src/store/s3/address.ts'
import { loadDriver } from '../../src/store/s3/client.ts'
import { S3KeyValue } from '../../src/store/s3/key-value.ts'
import { startStub } from './stub-server.ts'

const begin = async (
  credentials?: () => Promise<{ accessKeyId: string; secretAccessKey: string; expiration?: Date }>,
) => {
  const stub = await startStub()
  const kv = new S3KeyValue(await loadDriver(), parseAddress(`s3://bucket/jobs?endpoint=${stub.endpoint}`), {
    ...(credentials === undefined ? null : { credentials }),
    requestTimeout: 5_000,
  })
  onTestFinished(async () => {
    await kv.close()
    await stub.close()
  })
  return { stub, kv }
}

test('credentials that expire are asked for again, and the next request is signed with the new ones', async () => {
  let accessKeyId = 'first'
  const { stub, kv } = await begin(async () => ({
    accessKeyId,
    secretAccessKey: 'secret',
    // In the minutes before the expiry the SDK asks again.
    expiration: new Date(Date.now() + 1_000),
  }))
  await kv.create('a', '1')
  await kv.get('a')
  accessKeyId = 'second'
  await kv.create('b', '1')
  await kv.list('', { limit: 10 })
  expect(stub.signers).toEqual(['first', 'first', 'second', 'second'])
})

test('credentials that could not be had are asked for again', async () => {
  let isDown = true
  const { stub, kv } = await begin(async () => {
    if (isDown) throw new Error('no metadata service')
    return { accessKeyId: 'late', secretAccessKey: 'secret' }
  })
  await expect(kv.create('a', '1')).rejects.toThrow('no metadata service')
  isDown = false
  expect(await kv.create('a', '1')).not.toBeNull()
  expect(stub.signers).toEqual(['late'])
})

test('keys that were replaced in the file of a profile are read again when the server refuses the old ones', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-profile-'))
  const file = join(folder, 'credentials')
  const write = (key: string): void =>
    writeFileSync(file, `[default]\naws_access_key_id=${key}\naws_secret_access_key=s\n`)
  for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN', 'AWS_PROFILE'])
    vi.stubEnv(name, undefined)
  vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', file)
  onTestFinished(() => {
    vi.unstubAllEnvs()
    rmSync(folder, { recursive: true })
  })
  write('first')
  const { stub, kv } = await begin()
  await kv.create('a', '1')
  write('second')
  stub.manners = { knows: 'second' }
  // At once, without a visible error.
  expect(await kv.create('b', '1')).not.toBeNull()
  expect((await kv.get('b'))?.value).toBe('1')
  expect(stub.signers).toEqual(['first', 'first', 'second', 'second'])
})

test('credentials that are refused and stay the same are an error that says so', async () => {
  const { stub, kv } = await begin(async () => ({ accessKeyId: 'old', secretAccessKey: 's' }))
  stub.manners = { knows: 'new' }
  await expect(kv.get('a')).rejects.toMatchObject({
    code: 'INVALID_OPTION',
    message: expect.stringContaining('were read again'),
  })
})

test('requests beside each other keep their own keys, bodies and conditions', async () => {
  const { stub, kv } = await begin(async () => ({ accessKeyId: 'a', secretAccessKey: 'b' }))
  const keys = Array.from({ length: 50 }, (_, n) => `key-${n}`)
  const marks = await Promise.all(keys.map((key) => kv.create(key, `body of ${key}`)))
  for (const key of keys) expect(stub.objects.get(`jobs/${key}`)?.body).toBe(`body of ${key}`)
  const [again, updated, read] = await Promise.all([
    Promise.all(keys.map((key) => kv.create(key, 'other'))),
    Promise.all(keys.map((key, n) => kv.update(key, 'new', n % 2 ? marks[n]! : '"stale"'))),
    Promise.all(keys.map((key) => kv.get(key))),
  ])
  expect(again.every((mark) => mark === null)).toBe(true)
  expect(updated.map((mark) => mark !== null)).toEqual(keys.map((_, n) => n % 2 === 1))
  expect(read.every((entry, n) => ['new', `body of ${keys[n]}`].includes(entry!.value))).toBe(true)
})
