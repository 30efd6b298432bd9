/** Each fault of the proxy, as a client sees it and as the server behind it does, on the real S3 server. */
import { randomBytes } from 'node:crypto'
import { describe, expect, onTestFinished, test } from 'vitest'
import { serversOf } from './ask.ts'
import { type FaultProxyOptions, type FaultRates, startFaultProxy } from './http-fault-proxy.ts'
import { s3Target } from './s3.ts'
import { sendSigned } from './signed-request.ts'

const [server] = (await serversOf('s3'))!

const onS3 = (tests: (url: string) => void): void => {
  if ('missing' in server!)
    test('the fault proxy', (context) => context.skip(`${server.name} could not be started: ${server.missing}`))
  else describe('the fault proxy', () => tests(server!.url))
}

onS3((url) => {
  const { endpoint, bucket, ...keys } = s3Target(url)

  /** A folder of its own in the bucket, through the proxy and past it. */
  const begin = async (options: Omit<FaultProxyOptions, 'endpoint' | 'seed'> & { readonly seed?: number }) => {
    const proxy = await startFaultProxy({ seed: 1, ...options, endpoint })
    onTestFinished(() => proxy.close())
    const folder = randomBytes(6).toString('hex')
    const sendTo =
      (through: string) =>
      async (method: string, key: string, body?: string, headers: Record<string, string> = {}) => {
        const at = new URL(`/${bucket}/${folder}/${key}`, through)
        const answer = await sendSigned({ method, url: at, headers, ...(body === undefined ? null : { body }) }, keys)
        return { status: answer.status, text: await answer.text() }
      }
    const list = async (): Promise<string> => {
      const at = new URL(`/${bucket}?list-type=2&prefix=${folder}%2F&max-keys=1000`, proxy.endpoint)
      const answer = await sendSigned({ method: 'GET', url: at }, keys)
      return answer.text()
    }
    return { proxy, through: sendTo(proxy.endpoint), past: sendTo(endpoint), list }
  }

  test('without faults, signed requests pass with body, query and conditions', async () => {
    const { proxy, through, list } = await begin({})
    expect(await through('PUT', 'a', 'one', { 'if-none-match': '*' })).toMatchObject({ status: 200 })
    expect(await through('PUT', 'a', 'two', { 'if-none-match': '*' })).toMatchObject({ status: 412 })
    expect(await through('GET', 'a')).toEqual({ status: 200, text: 'one' })
    expect((await through('HEAD', 'a')).status).toBe(200)
    expect(await list()).toContain('<KeyCount>1</KeyCount>')
    expect((await through('DELETE', 'a')).status).toBe(204)
    expect(Object.fromEntries(proxy.requests)).toEqual({ PUT: 2, GET: 1, HEAD: 1, LIST: 1, DELETE: 1 })
    expect(Object.values(proxy.faults)).toEqual([0, 0, 0, 0, 0, 0])
  })

  test('unavailable is a 500 or a 503, and nothing was written', async () => {
    const { through, past } = await begin({ rates: { unavailable: 1 } })
    const statuses = new Set<number>()
    for (let i = 0; i < 20; i++) statuses.add((await through('PUT', 'a', 'one')).status)
    expect([...statuses].sort()).toEqual([500, 503])
    expect((await past('GET', 'a')).status).toBe(404)
  })

  test('conflict is a 409 to writes with a condition only', async () => {
    const { through, past } = await begin({ rates: { conflict: 1 } })
    expect((await through('PUT', 'a', 'one', { 'if-none-match': '*' })).status).toBe(409)
    expect((await past('GET', 'a')).status).toBe(404)
    expect((await through('PUT', 'a', 'one')).status).toBe(200)
    expect((await through('GET', 'a')).status).toBe(200)
  })

  test('a lost reply is one to a write that was carried out', async () => {
    const { proxy, through, past } = await begin({ rates: { lostReply: 1 } })
    await expect(through('PUT', 'a', 'one')).rejects.toThrow('fetch failed')
    expect(await past('GET', 'a')).toEqual({ status: 200, text: 'one' })
    expect((await through('GET', 'a')).text).toBe('one')
    expect(proxy.faults.lostReply).toBe(1)
  })

  test('a truncated body is an error, not a shorter body', async () => {
    const { through, past } = await begin({ rates: { truncated: 1 } })
    await past('PUT', 'a', 'x'.repeat(10_000))
    await expect(through('GET', 'a')).rejects.toThrow()
  })

  test('lists come in pages of two, and the next page follows', async () => {
    const { past, list } = await begin({ pages: { of: 2, keys } })
    for (const key of ['a', 'b', 'c']) await past('PUT', key, key)
    const page = await list()
    expect(page).toContain('<KeyCount>2</KeyCount>')
    expect(page).toContain('<IsTruncated>true</IsTruncated>')
  })

  test('a slow answer is whole, a swallowed request is never answered', async () => {
    const { proxy, through, past } = await begin({ rates: { slow: 1 }, lateness: 50 })
    await through('PUT', 'a', 'one')
    expect((await through('GET', 'a')).text).toBe('one')
    proxy.rates = { swallowed: 1 }
    const waiting = through('PUT', 'b', 'two')
    waiting.catch(() => {})
    // As long as other requests take, and longer.
    for (let i = 0; i < 20; i++) await past('GET', 'a')
    expect(await Promise.race([waiting, Promise.resolve('not answered')])).toBe('not answered')
    expect((await past('GET', 'b')).status).toBe(404)
    await proxy.close()
    await expect(waiting).rejects.toThrow()
  })

  test('the same seed does the same to the same requests, at about the rates asked for', async () => {
    const rates: FaultRates = { unavailable: 0.1, conflict: 0.2, lostReply: 0.1 }
    const run = async (seed: number): Promise<string> => {
      const { through } = await begin({ seed, rates })
      const seen: string[] = []
      for (let i = 0; i < 200; i++)
        seen.push(
          await through('PUT', String(i), 'x', { 'if-none-match': '*' }).then(
            ({ status }) => String(status),
            () => 'lost',
          ),
        )
      return seen.join(' ')
    }
    const [first, again, other] = [await run(7), await run(7), await run(8)]
    expect(again).toBe(first)
    expect(other).not.toBe(first)
    const share = (what: string): number => first.split(' ').filter((seen) => seen === what).length / 200
    expect(share('409')).toBeGreaterThan(0.1)
    expect(share('409')).toBeLessThan(0.3)
    expect(share('lost')).toBeGreaterThan(0.03)
    expect(share('200')).toBeGreaterThan(0.5)
  })
})
