/** The simulated S3 does what the real ones do, and can be made to do what they do at their worst. */
import { afterAll, beforeEach, expect, test } from 'vitest'
import { parseAddress } from '../../../src/store/s3/address.ts'
import { loadDriver } from '../../../src/store/s3/client.ts'
import { S3KeyValue } from '../../../src/store/s3/key-value.ts'
import { countsOf, dollarsOf, startSimulatedS3 } from './start.ts'

const s3 = await startSimulatedS3({ latency: 0 })
afterAll(() => s3.remove())
beforeEach(() =>
  s3.change({
    latency: 0,
    writesPerSecondAndKey: null,
    listsUnordered: false,
    conditions: 'supported',
    refused: [],
    rights: {},
    faults: [],
    buckets: null,
    clockOffset: 0,
  }),
)

const open = async (by?: string) => {
  const { url, bucket, credentials } = s3.fresh(by)
  return { kv: new S3KeyValue(await loadDriver(), parseAddress(url), { credentials, requestTimeout: 2_000 }), bucket }
}

test('writes hold to their conditions', async () => {
  const { kv } = await open()
  const first = await kv.create('a', '1')
  expect(await kv.create('a', '2')).toBeNull()
  expect(await kv.update('a', '2', '"other"')).toBeNull()
  expect(await kv.update('b', '2', first!)).toBeNull()
  const second = await kv.update('a', '2', first!)
  expect(await kv.get('a')).toEqual({ value: '2', mark: second })
  await kv.delete(['a'])
  expect(await kv.get('a')).toBeNull()
})

test('lists go on after a key, in the order of bytes, page by page', async () => {
  await s3.change({ pageSize: 3 })
  const { kv } = await open()
  const keys = ['a/1', 'a/2', 'a/3', 'a/4', 'a/5', 'a=1', 'b/1']
  for (const key of keys.toReversed()) await kv.create(key, '')
  expect(await kv.list('a/', { limit: 1_000 })).toEqual(keys.slice(0, 5))
  expect(await kv.list('a', { limit: 1_000, after: 'a/4' })).toEqual(['a/5', 'a=1'])
  expect(await kv.list('', { limit: 2 })).toEqual(['a/1', 'a/2'])
  await kv.delete(['a/1', 'a/2', 'missing'])
  expect(await kv.list('a/', { limit: 2 })).toEqual(['a/3', 'a/4'])
  await s3.change({ pageSize: 1_000 })
})

test('a delimiter folds keys into common prefixes, also across pages', async () => {
  const { kv, bucket } = await open()
  for (const key of ['a/1', 'a/2', 'b', 'c/1', 'd/1']) await kv.create(key, '')
  const pageAfter = async (token: string): Promise<string> => {
    const answer = await fetch(`${s3.endpoint}/${bucket}?list-type=2&delimiter=/&max-keys=2${token}`)
    return answer.text()
  }
  const first = await pageAfter('')
  expect([...first.matchAll(/<(?:Key|Prefix)>([^<]*)</g)].map(([, name]) => name)).toEqual(['b', 'a/'])
  const token = /<NextContinuationToken>([^<]*)</.exec(first)![1]
  const second = await pageAfter(`&continuation-token=${token}`)
  expect([...second.matchAll(/<(?:Key|Prefix)>([^<]*)</g)].map(([, name]) => name)).toEqual(['c/', 'd/'])
  expect(second).toContain('<IsTruncated>false')
})

test('what is read again and has not changed is a 304', async () => {
  const { kv, bucket } = await open()
  const etag = await kv.create('a', '1')
  const answer = await fetch(`${s3.endpoint}/${bucket}/a`, { headers: { 'if-none-match': etag! } })
  expect(answer.status).toBe(304)
})

test('requests are counted by bucket, client, kind, status and folder', async () => {
  const { kv, bucket } = await open('worker-1')
  await s3.reset()
  await kv.create('tasks/1', '')
  await kv.create('tasks/1', '')
  await kv.get('tasks/2')
  await kv.list('ready/', { limit: 1 })
  await kv.delete(['tasks/1', 'tasks/2'])
  const rows = await s3.reset()
  expect(countsOf(rows)).toEqual({ PUT: 2, GET: 1, LIST: 1, DELETE: 1 })
  expect(rows).toContainEqual({ bucket, by: 'worker-1', kind: 'PUT', status: 412, folder: 'tasks', count: 1 })
  expect(dollarsOf(countsOf(rows))).toBeCloseTo((3 * 5 + 0.4) / 1e6)
  expect(countsOf(await s3.rows())).toEqual({ PUT: 0, GET: 0, LIST: 0, DELETE: 0 })
})

test('a limit of writes per key answers 429', async () => {
  await s3.change({ writesPerSecondAndKey: 1 })
  const { kv } = await open()
  await kv.create('a', '1')
  await expect(kv.create('a', '2')).rejects.toMatchObject({ details: { status: 429 } })
  expect(await kv.create('b', '1')).not.toBeNull()
})

test('lists can come in another order, each key once', async () => {
  await s3.change({ listsUnordered: true, pageSize: 7 })
  const { kv } = await open()
  const keys = Array.from({ length: 40 }, (_, n) => `a/${String(n).padStart(2, '0')}`)
  for (const key of keys) await kv.create(key, '')
  const listed = await kv.list('a/', { limit: 1_000 })
  expect(listed).not.toEqual(keys)
  expect(listed.toSorted()).toEqual(keys)
  await s3.change({ pageSize: 1_000 })
})

test('actions are refused to all, or to one client', async () => {
  await s3.change({ refused: ['s3:DeleteObject'], rights: { reader: ['s3:GetObject'] } })
  const [{ kv }, { kv: reader }] = [await open(), await open('reader')]
  await kv.create('a', '1')
  await expect(kv.delete(['a'])).rejects.toMatchObject({ details: { status: 403 } })
  await expect(reader.list('', { limit: 1 })).rejects.toMatchObject({ details: { status: 403 } })
  expect(await reader.get('a')).toBeNull()
})

test('conditional writes can be unsupported, and buckets missing', async () => {
  await s3.change({ conditions: 'unsupported', buckets: ['other'] })
  const { kv, bucket } = await open()
  await expect(kv.create('a', '1')).rejects.toMatchObject({ details: { name: 'NoSuchBucket' } })
  await fetch(`${s3.endpoint}/${bucket}`, { method: 'PUT' })
  await expect(kv.create('a', '1')).rejects.toMatchObject({ details: { status: 501 } })
})

test('faults happen as often as said, to what they are meant for', async () => {
  await s3.change({
    faults: [
      { what: 'status', kind: 'PUT', key: 'a', times: 2, status: 500, code: 'InternalError' },
      { what: 'lost-reply', kind: 'PUT', key: 'b', times: 1 },
    ],
  })
  const { kv } = await open()
  for (let n = 0; n < 2; n++) await expect(kv.create('a', '1')).rejects.toMatchObject({ details: { status: 500 } })
  expect(await kv.create('a', '1')).not.toBeNull()
  await expect(kv.create('b', '1')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  expect(await kv.create('b', '1')).toBeNull()
})

test('every request takes its latency, and none waits for another', async () => {
  const { kv } = await open()
  await s3.change({ latency: 100 })
  const begun = performance.now()
  await Promise.all(Array.from({ length: 40 }, (_, n) => kv.create(`a${n}`, '')))
  const took = performance.now() - begun
  expect(took).toBeGreaterThanOrEqual(99)
  expect(took).toBeLessThan(40 * 100)
})
