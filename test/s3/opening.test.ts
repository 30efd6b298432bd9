/** Before the first task: which servers are refused, and what each refusal says. Uses a stub that misbehaves on demand. */
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { connect } from '../../src/index.ts'
import { parseAddress } from '../../src/store/s3/address.ts'
import { openS3 } from '../../src/store/s3/store.ts'
import { type StubManners, type StubServer, startStub } from './stub-server.ts'

const credentials = { accessKeyId: 'key-id', secretAccessKey: 'very-secret' }

const stubWith = async (manners: StubManners): Promise<StubServer> => {
  const stub = await startStub(manners)
  onTestFinished(() => stub.close())
  return stub
}

const open = async (stub: StubServer, create = true) => {
  const store = await openS3(`s3://bucket/jobs?endpoint=${stub.endpoint}&region=eu-north-1`, { credentials, create })
  onTestFinished(() => store.close())
  return store
}

describe('the proof at connect', () => {
  const untrusted: readonly (readonly [what: string, manners: StubManners, says: RegExp])[] = [
    ['ignores If-None-Match', { ignores: ['if-none-match'] }, /16 of 16 writers at once with If-None-Match/],
    ['ignores If-Match', { ignores: ['if-match'] }, /16 of 16 writers at once with If-Match/],
    ['ignores both', { ignores: ['if-match', 'if-none-match'] }, /two workers could take the same task/],
    ['checks and writes in two steps', { isSlowToWrite: true }, /writers at once with If-None-Match/],
    ['writes under If-Match what is not there', { writesMissing: true }, /If-Match on a key that is not there/],
    ['ignores StartAfter', { ignoresStartAfter: true }, /does not continue after the key that start-after names/],
    ['lists keys late', { listsLate: true }, /leaves out keys that were just written/],
  ]
  test.each(untrusted)('refuses a server that %s', async (_, manners, says) => {
    const stub = await stubWith(manners)
    await expect(open(stub)).rejects.toMatchObject({ code: 'INVALID_OPTION', message: expect.stringMatching(says) })
    expect([...stub.objects.keys()].filter((key) => key.endsWith('holdfast.json'))).toEqual([])
  })

  test('accepts a server that honours them, and leaves nothing but its result behind', async () => {
    const stub = await stubWith({})
    await open(stub)
    expect([...stub.objects.keys()].sort()).toEqual([
      'jobs/holdfast.json',
      expect.stringMatching(/^jobs\/proof\/[0-9a-f]{16}\.json$/),
    ])
  })

  test('finds out that an older gateway wants etags without quotes', async () => {
    const stub = await stubWith({ wantsBareEtags: true })
    const store = await open(stub)
    expect(await store.documents.put('a', 'one', 0)).toBe(1)
    expect(await store.documents.put('a', 'two', 1)).toBe(2)
  })

  test('is given once for a store: a later client makes two requests, and neither writes', async () => {
    const stub = await stubWith({})
    await open(stub)
    expect(stub.requests.filter((request) => request.startsWith('PUT')).length).toBeLessThanOrEqual(50)
    stub.requests.length = 0
    await open(stub)
    expect(stub.requests).toEqual([expect.stringMatching(/^GET jobs\/(holdfast|proof)/), expect.stringMatching(/^GET/)])
  })

  test('is not given where there is no store to open', async () => {
    const stub = await stubWith({})
    await expect(open(stub, false)).rejects.toMatchObject({ code: 'STORE_NOT_FOUND' })
    expect(stub.requests.filter((request) => !request.startsWith('GET'))).toEqual([])
  })
})

describe('a store that is not there', () => {
  test('is not made unless that is asked for', async () => {
    const stub = await stubWith({})
    await expect(open(stub, false)).rejects.toMatchObject({
      code: 'STORE_NOT_FOUND',
      message: expect.stringContaining('holdfast init'),
    })
    await open(stub)
    await open(stub, false)
  })

  test('is distinguished from a bucket that is not there', async () => {
    const stub = await stubWith({ status: 404, code: 'NoSuchBucket' })
    await expect(open(stub)).rejects.toMatchObject({
      code: 'STORE_NOT_FOUND',
      message: expect.stringContaining('there is no bucket bucket'),
    })
  })

  test('is not taken for one because a right is missing', async () => {
    const stub = await stubWith({ status: 403, code: 'AccessDenied' })
    await expect(open(stub)).rejects.toMatchObject({
      code: 'STORE_READ_ONLY',
      message: expect.stringContaining('s3:ListBucket'),
    })
  })

  test('of another release is refused', async () => {
    const stub = await stubWith({})
    await open(stub)
    stub.objects.set('jobs/holdfast.json', { body: '{"holdfast":"x","layout":99}', etag: '"e"' })
    await expect(open(stub)).rejects.toMatchObject({ code: 'SCHEMA_NEWER' })
    stub.objects.set('jobs/holdfast.json', { body: 'garbage', etag: '"e"' })
    await expect(open(stub)).rejects.toMatchObject({ code: 'STORE_CORRUPT' })
  })
})

describe('an address', () => {
  test('names bucket, prefix, endpoint and region', () => {
    expect(parseAddress('s3://jobs')).toMatchObject({ bucket: 'jobs', prefix: '', endpoint: null, pathStyle: false })
    expect(parseAddress('s3://jobs/a/b/?endpoint=http://localhost:9000&region=eu-north-1')).toEqual({
      bucket: 'jobs',
      prefix: 'a/b/',
      endpoint: 'http://localhost:9000',
      region: 'eu-north-1',
      pathStyle: true,
      address: 's3://jobs/a/b (http://localhost:9000)',
    })
  })

  const wrong = [
    's3://',
    's3://UPPER',
    's3://a',
    's3://jobs/a b',
    's3://jobs/ключ',
    's3://jobs?endpoint=localhost',
    's3://jobs?colour=red',
    `s3://jobs/${'x'.repeat(200)}`,
  ]
  test.each(wrong)('%s is refused', async (address) => {
    await expect(connect(address)).rejects.toMatchObject({ code: 'INVALID_OPTION', details: { field: 'url' } })
  })

  test('without a region, where none is set either, is refused at once', async () => {
    for (const name of ['AWS_REGION', 'AWS_DEFAULT_REGION', 'AWS_PROFILE']) vi.stubEnv(name, undefined)
    for (const name of ['AWS_CONFIG_FILE', 'AWS_SHARED_CREDENTIALS_FILE']) vi.stubEnv(name, '/no/such/file')
    onTestFinished(() => void vi.unstubAllEnvs())
    const begun = performance.now()
    await expect(connect('s3://jobs', { s3: { credentials } })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('?region='),
      details: { field: 'url' },
    })
    expect(performance.now() - begun).toBeLessThan(8_000)
  })

  test.each(['s3://id:very-secret@jobs/a', 's3://jobs/a?endpoint=http://id:very-secret@localhost:9000'])(
    'with a secret in it is refused without repeating it',
    async (address) => {
      const error = await connect(address).catch((thrown: Error) => thrown)
      expect(error).toMatchObject({ code: 'INVALID_OPTION' })
      expect(JSON.stringify(error) + String(error)).not.toContain('very-secret')
    },
  )

  test('and every message of its store are free of credentials', async () => {
    const stub = await stubWith({})
    const store = await open(stub)
    stub.manners = { status: 403, code: 'SignatureDoesNotMatch' }
    const error = await store.get(['01900000-0000-7000-8000-000000000001']).catch((thrown: Error) => thrown)
    expect(JSON.stringify(error) + String(error) + store.address).not.toMatch(/very-secret|key-id/)
  })
})
