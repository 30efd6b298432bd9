/** What goes over the wire: lists without payloads, compression, ETags, bodies that may be left out, statuses. */
import { gunzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { createHttpHandler, everybody, Tokens, VIEWER } from '../../src/http/index.ts'
import { connect, silentLogger } from '../../src/index.ts'
import { FakeClock } from '../../src/testing/index.ts'
import { API, openHandler, requestOf, TOKEN } from './setup.ts'

const bearer = { authorization: `Bearer ${TOKEN}` }

describe('a list', () => {
  it('has no payloads unless they are asked for, however large they are', async () => {
    const { call, client } = await openHandler()
    const large = 'x'.repeat(900_000)
    await client.submitMany(Array.from({ length: 10 }, () => ({ type: 'a', input: { large } })))
    const response = await call('GET', `${API}/tasks`)
    expect(JSON.stringify(response.body).length).toBeLessThan(20_000)
    expect(response.body.tasks[0]).toMatchObject({ input: null, output: null, payloads: 'omitted', view: 'ready' })
    const { body } = await call('GET', `${API}/tasks?fields=all&limit=1`)
    expect(body.tasks[0]).toMatchObject({ input: { large }, payloads: 'shown' })
    expect((await call('GET', `${API}/tasks?fields=most`)).body.error.details).toEqual({ field: 'fields' })
  })

  it('shows of an error and of progress what a row shows', async () => {
    const { call, client } = await openHandler()
    const { id } = await client.submit('a', 1, { maxRetries: 0 })
    const lease = await client.claim(id, { workerId: 'w' })
    await lease.renew({ progress: { percent: 40 } })
    expect((await call('GET', `${API}/tasks`)).body.tasks[0].progress).toEqual({ percent: 40 })
    await lease.renew({ progress: 'x'.repeat(5_000) })
    expect((await call('GET', `${API}/tasks`)).body.tasks[0].progress).toBeNull()
    await lease.fail(new Error('y'.repeat(2_000)))
    const [{ lastError }] = (await call('GET', `${API}/tasks`)).body.tasks
    expect(lastError).toMatchObject({ name: 'Error', message: 'y'.repeat(500), attempt: 1 })
    expect(lastError.stack).toBeUndefined()
    const { body } = await call('GET', `${API}/dead-letters/groups`)
    expect(body.groups[0].sample).toMatchObject({ input: null, payloads: 'omitted' })
  })
})

describe('an answer to a read', () => {
  it('is compressed for a caller that takes it, and not for others or where it is small', async () => {
    const { fetch, client } = await openHandler()
    await client.submitMany(Array.from({ length: 20 }, (_, input) => ({ type: 'a', input })))
    const get = (path: string, accepted: string): Promise<Response> =>
      fetch(requestOf('GET', API + path, undefined, { ...bearer, 'accept-encoding': accepted }))
    const zipped = await get('/tasks', 'br, gzip')
    expect([zipped.headers.get('content-encoding'), zipped.headers.get('vary')]).toEqual(['gzip', 'accept-encoding'])
    const bytes = Buffer.from(await zipped.arrayBuffer())
    const plain = await (await get('/tasks', 'identity')).text()
    expect((JSON.parse(gunzipSync(bytes).toString()) as { tasks: object[] }).tasks).toEqual(
      (JSON.parse(plain) as { tasks: object[] }).tasks,
    )
    expect(bytes.length).toBeLessThan(plain.length / 4)
    expect((await get('/tasks', 'gzip;q=0')).headers.get('content-encoding')).toBeNull()
    expect((await get('/tasks/count', 'gzip')).headers.get('content-encoding')).toBeNull()
  })

  it('has an ETag, and is 304 without a body while nothing has changed', async () => {
    const { fetch, client } = await openHandler()
    const { id } = await client.submit('a', 1, { delay: '1h' })
    const get = (headers: Record<string, string> = {}): Promise<Response> =>
      fetch(requestOf('GET', `${API}/tasks/${id}`, undefined, { ...bearer, ...headers }))
    const tag = (await get()).headers.get('etag')!
    expect(tag).toMatch(/^W\/"[\w-]+"$/)
    const same = await get({ 'if-none-match': `"other", ${tag}` })
    expect([same.status, await same.text(), same.headers.get('etag')]).toEqual([304, '', tag])
    await client.amend(id, { priority: 4 })
    const other = await get({ 'if-none-match': tag })
    expect([other.status, await other.json()]).toEqual([200, expect.objectContaining({ priority: 4 })])
  })

  it('to HEAD has the status and headers of GET, and no body', async () => {
    const { fetch, call } = await openHandler({ metrics: async () => ({ type: 'text/plain', text: 'up 1' }) })
    for (const path of [`${API}/stats`, '/openapi.json', '/metrics', '/health']) {
      const [head, get] = await Promise.all(
        ['HEAD', 'GET'].map((method) => fetch(requestOf(method, path, undefined, bearer))),
      )
      expect([path, head!.status, head!.headers.get('content-type')]).toEqual([
        path,
        get!.status,
        get!.headers.get('content-type'),
      ])
      expect(await head!.text()).toBe('')
    }
    expect((await call('HEAD', `${API}/tasks/${crypto.randomUUID()}`)).status).toBe(404)
    expect((await call('HEAD', `${API}/claim`)).status).toBe(405)
  })
})

describe('a request', () => {
  it('without a body needs no content type, and one with a body does', async () => {
    const { fetch, client } = await openHandler()
    const { id } = await client.submit('a', 1)
    const post = (path: string, more: RequestInit): Promise<Response> =>
      fetch(new Request(`http://localhost:8484${API}${path}`, { method: 'POST', ...more }))
    const form = { headers: { ...bearer, 'content-type': 'application/x-www-form-urlencoded' }, body: 'reason=x' }
    expect((await post(`/tasks/${id}/cancel`, form)).status).toBe(415)
    const unsaid = { headers: bearer, body: new TextEncoder().encode('{"reason":"x"}') }
    expect((await post(`/tasks/${id}/cancel`, unsaid)).status).toBe(415)
    const none = await post(`/tasks/${id}/cancel`, { headers: bearer })
    expect([none.status, await none.json()]).toEqual([200, expect.objectContaining({ status: 'cancelled' })])
    // What needs fields says so.
    expect((await post('/tasks', { headers: bearer })).status).toBe(400)
  })

  it('for a task that exists answers 200, for a new one 201', async () => {
    const { call } = await openHandler()
    const submit = async (more: object) => {
      const { status, body } = await call('POST', `${API}/tasks`, { type: 'a', input: 1, ...more })
      return [status, body.deduplicated ?? false, body.coalesced ?? false]
    }
    expect(await submit({ idempotencyKey: 'k' })).toEqual([201, false, false])
    expect(await submit({ idempotencyKey: 'k' })).toEqual([200, true, false])
    expect(await submit({ coalesce: { key: 'c', delay: '1h' } })).toEqual([201, false, false])
    expect(await submit({ coalesce: { key: 'c', delay: '1h' } })).toEqual([200, false, true])
  })

  it('that lacks a confirmation is told which route gives one', async () => {
    const { call } = await openHandler()
    for (const [path, body, preview] of [
      ['/dead-letters/replay', { query: {} }, '/dead-letters/replay/preview'],
      ['/dead-letters/purge', { query: {} }, '/dead-letters/purge/preview'],
      ['/tasks/bulk', { action: 'cancel', query: {} }, '/tasks/bulk/preview'],
    ] as const) {
      const { error } = (await call('POST', API + path, body)).body
      expect(error).toMatchObject({ code: 'NOT_CONFIRMED', message: expect.stringContaining(`POST ${API}${preview}`) })
      expect((await call('POST', API + preview, body)).status).toBe(200)
    }
  })
})

describe('what is redacted', () => {
  const secret = 'canary-7f3a'

  it('is hidden in the options and tags of schedules', async () => {
    const { call, client } = await openHandler({ redact: ['*token*'] })
    await client.schedules.create({
      id: 's',
      type: 'a',
      input: {},
      every: '1h',
      options: { tags: { access_token: secret, team: 'data' } },
    })
    for (const path of ['/schedules', '/schedules/s']) {
      const text = JSON.stringify((await call('GET', API + path)).body)
      expect(text).toContain('"access_token":"[redacted]"')
      expect(text).toContain('"team":"data"')
      expect(text).not.toContain(secret)
    }
  })

  it('cannot be guessed by a filter, in a query or in a body', async () => {
    const token = 'the-token-of-a-viewer-0123456789'
    const tokens = new Tokens([{ token, rights: VIEWER }])
    const { fetch, client } = await openHandler({ redact: ['*token*'], authorize: tokens.authorize })
    await client.submit('a', 1, { tags: { access_token: secret, team: 'data' } })
    const ask = async (method: string, path: string, body?: unknown): Promise<unknown[]> => {
      const response = await fetch(requestOf(method, API + path, body, { authorization: `Bearer ${token}` }))
      const { error } = (await response.json()) as { error?: { details: object } }
      return [response.status, error?.details ?? null]
    }
    const refused = [400, { field: 'tag' }]
    const tag = `access_token=${secret}`
    for (const path of [`/tasks?tag=${tag}`, `/tasks/count?tag=${tag}`, `/dead-letters/groups?tag=${tag}`])
      expect([path, await ask('GET', path)]).toEqual([path, refused])
    expect(await ask('POST', '/tasks/bulk/preview', { action: 'cancel', query: { tag } })).toEqual(refused)
    const query = { tag: { name: 'Access_Token', value: secret } }
    expect(await ask('POST', '/dead-letters/replay/preview', { query })).toEqual(refused)
    expect(await ask('GET', '/tasks/count?tag=team=data')).toEqual([200, null])
  })
})

it('a background job begins and ends by the time of the store, whatever that of the server', async () => {
  const clock = new FakeClock({ now: Date.UTC(2031, 0, 1) })
  const client = await connect('memory:', { clock, logger: silentLogger })
  const handler = createHttpHandler(client, { authorize: everybody })
  const read = async (method: string, path: string, body?: object) =>
    (await (await handler.fetch(requestOf(method, API + path, body))).json()) as Record<string, string>
  const { id } = await client.submit('a', 1)
  const begun = await read('POST', '/tasks/bulk', { action: 'cancel', ids: [id] })
  expect(begun['startedAt']).toMatch(/^2031-01-01T00:00:0/)
  await expect.poll(async () => (await read('GET', `/jobs/${begun['id']}`))['endedAt']).toMatch(/^2031-01-01T00:00:/)
  handler.close()
  await client.close()
})

it('a claim that waits is answered at once when the server stops', async () => {
  const { call, client, close } = await openHandler()
  const asked = call('POST', `${API}/claim`, { workerId: 'w', wait: '30s' })
  await expect.poll(async () => (await client.workers()).length).toBe(1)
  const began = performance.now()
  close()
  expect((await asked).body).toEqual({ leases: [] })
  expect(performance.now() - began).toBeLessThan(5_000)
  expect((await call('POST', `${API}/claim`, { workerId: 'w', wait: '30s' })).body).toEqual({ leases: [] })
})
