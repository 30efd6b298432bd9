/** Who gets in, from where, and what they get to see. docs/security.md names these tests. */
import { connect as connectSocket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  behindProxy,
  createHttpHandler,
  everybody,
  listen,
  openApi,
  Tokens,
  VIEWER,
  WORKER,
} from '../../src/http/index.ts'
import { connect, fingerprintOf, silentLogger } from '../../src/index.ts'
import { API, openHandler, requestOf, TOKEN } from './setup.ts'

const ID = '01a2f7c4-5b1e-7c3d-9f00-2a6d1c0e8b47'

/** Every operation, and what else answers with data. */
const operations = (): { method: string; path: string; right: string }[] => {
  const { paths } = openApi('0') as { paths: Record<string, Record<string, { 'x-right': string }>> }
  const listed = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      // The others are of the server: some need no credential, and two are below.
      .filter(([, { 'x-right': right }]) => right !== undefined)
      .map(([method, { 'x-right': right }]) => ({
        method: method.toUpperCase(),
        path: API + path.replace(/\{\w+\}/g, ID),
        right,
      })),
  )
  return [
    ...listed,
    { method: 'GET', path: '/openapi.json', right: 'read' },
    { method: 'GET', path: '/metrics', right: 'read' },
  ]
}

const metrics = async () => ({ type: 'text/plain', text: 'holdfast_queue_depth 1' })

describe('who gets in', () => {
  it('no caller without a token is let in, on any route', async () => {
    const { fetch } = await openHandler({ metrics })
    expect(operations().length).toBeGreaterThan(40)
    for (const { method, path } of operations()) {
      for (const authorization of ['', `Bearer ${TOKEN}x`, 'Bearer x', `Basic ${TOKEN}`]) {
        const body = path.endsWith('/bulk/preview') ? { action: 'retry', query: {} } : {}
        const response = await fetch(requestOf(method, path, body, { authorization }))
        expect(`${method} ${path} ${response.status}`).toBe(`${method} ${path} 401`)
        expect(response.headers.get('www-authenticate')).toMatch(/^Bearer/)
      }
    }
  })

  it('health says nothing but that the server runs', async () => {
    const { fetch } = await openHandler()
    expect(await (await fetch(requestOf('GET', '/health'))).json()).toEqual({ status: 'ok' })
  })

  it('a credential may do what its rights allow, route by route', async () => {
    const [viewer, worker] = ['the-token-of-a-viewer-0123456789', 'the-token-of-a-worker-0123456789']
    const tokens = new Tokens([
      { token: viewer, rights: VIEWER },
      { token: worker, rights: WORKER },
    ])
    const { fetch } = await openHandler({ authorize: tokens.authorize, metrics })
    const given = { [viewer]: VIEWER as readonly string[], [worker]: WORKER as readonly string[] }
    for (const { method, path, right } of operations()) {
      for (const [token, rights] of Object.entries(given)) {
        const leave = new AbortController()
        const request = requestOf(method, path, {}, { authorization: `Bearer ${token}` })
        const { status } = await fetch(new Request(request, { signal: leave.signal }))
        leave.abort()
        expect(`${method} ${path} ${status === 403 ? 'refused' : 'allowed'}`).toBe(
          `${method} ${path} ${rights.includes(right) ? 'allowed' : 'refused'}`,
        )
      }
    }
  })

  it('tokens are compared as digests of one length, and short ones are refused', async () => {
    expect(() => new Tokens([{ token: 'short', rights: VIEWER }])).toThrow(/24 to 512/)
    const { authorize } = new Tokens([{ token: TOKEN, rights: VIEWER }])
    // timingSafeEqual throws on unequal lengths: these would fail otherwise.
    for (const shown of ['x', `${TOKEN}x`, TOKEN.slice(1), 'x'.repeat(512)])
      expect(await authorize(requestOf('GET', '/', undefined, { authorization: `Bearer ${shown}` }))).toBeNull()
  })

  it('mounting it without authorize is refused', async () => {
    const client = await connect('memory:', { logger: silentLogger })
    onTestFinished(() => client.close())
    expect(() => createHttpHandler(client, {} as never)).toThrow(/authorize must be a function/)
  })

  it('a misspelt option is refused: it would protect nothing', async () => {
    const client = await connect('memory:', { logger: silentLogger })
    onTestFinished(() => client.close())
    const mount = (options: object) => () => createHttpHandler(client, { authorize: everybody, ...options })
    expect(mount({ readonly: true })).toThrow(/readonly is not an option of createHttpHandler: did you mean readOnly\?/)
    expect(mount({ hosts: 'app.example.com' })).toThrow(/hosts must be a list of host names, or 'any'/)
    expect(() => new Tokens([{ token: undefined as never, rights: VIEWER }])).toThrow(/is its environment variable set/)
    expect(() => new Tokens([{ token: TOKEN, rights: ['reed' as never] }])).toThrow(/'reed' is not a right/)
  })

  it('behind a proxy, only the configured header decides', async () => {
    const { fetch } = await openHandler({ authorize: behindProxy('x-user', (user) => (user === 'ann' ? VIEWER : [])) })
    const status = async (headers: Record<string, string>): Promise<number> =>
      (await fetch(requestOf('GET', `${API}/stats`, undefined, headers))).status
    expect(await status({ 'x-user': 'ann' })).toBe(200)
    expect(await status({ 'x-user': 'bob' })).toBe(403)
    expect(await status({ 'x-forwarded-user': 'ann', 'x-forwarded-for': '127.0.0.1' })).toBe(401)
  })

  it('a browser gets a cookie for the token, which is not the token', async () => {
    const { fetch } = await openHandler()
    const login = await fetch(requestOf('GET', `/login?token=${TOKEN}`))
    const cookie = login.headers.get('set-cookie')!
    expect([login.status, login.headers.get('location')]).toEqual([303, '/'])
    expect(cookie).toMatch(/^holdfast-[0-9a-f]{8}=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/)
    expect(cookie).not.toContain(TOKEN)
    const shown = { cookie: `other=1; ${cookie.split(';')[0]}` }
    expect((await fetch(requestOf('GET', `${API}/stats`, undefined, shown))).status).toBe(200)
    expect((await fetch(requestOf('GET', '/login?token=wrong'))).status).toBe(401)
    const secure = await fetch(requestOf('POST', `https://localhost${API}/session`, { token: TOKEN }))
    expect(secure.headers.get('set-cookie')).toMatch(/; Secure$/)
    const out = await fetch(requestOf('DELETE', `${API}/session`))
    expect(out.headers.get('set-cookie')).toMatch(/=; .*Max-Age=0/)
  })
})

describe('from where', () => {
  it('an unknown host name is refused before anything else, on every route', async () => {
    const { fetch } = await openHandler({ authorize: everybody, hosts: ['queue.example.com'], metrics })
    const at = async (path: string, host: string): Promise<number> =>
      (await fetch(requestOf('GET', path, undefined, { host }))).status
    for (const path of [
      `${API}/stats`,
      `${API}/changes`,
      '/openapi.json',
      '/metrics',
      '/health',
      '/login',
      '/',
      '/nothing',
    ]) {
      for (const host of ['evil.test', 'localhost.evil.test', '127.0.0.1.evil.test', 'evil.test:8484'])
        expect(`${path} ${await at(path, host)}`).toBe(`${path} 421`)
    }
    for (const host of [
      'localhost',
      'localhost:1',
      '127.0.0.1:8484',
      '[::1]:8484',
      'QUEUE.example.com',
      'queue.example.com.',
    ])
      expect(await at(`${API}/stats`, host)).toBe(200)
  })

  it('a page of another site cannot change anything, whatever it sends', async () => {
    const { fetch, client, call } = await openHandler()
    const cookie = (await fetch(requestOf('GET', `/login?token=${TOKEN}`))).headers.get('set-cookie')!.split(';')[0]!
    const pause = (headers: Record<string, string>, body: unknown = {}): Promise<Response> =>
      fetch(requestOf('POST', `${API}/queues/default/pause`, body, { cookie, ...headers }))
    const refused: [Record<string, string>, number][] = [
      [{ origin: 'https://evil.test' }, 403],
      [{ origin: 'null' }, 403],
      // Another program on this machine, on another port.
      [{ origin: 'http://localhost:9999' }, 403],
      [{ origin: 'http://localhost:8484', 'sec-fetch-site': 'cross-site' }, 403],
      [{ 'sec-fetch-site': 'same-site' }, 403],
      // Nothing says where it comes from, and the credential is one that browsers send by themselves.
      [{}, 403],
      [{ origin: 'http://localhost:8484', 'content-type': 'text/plain' }, 415],
      [{ origin: 'http://localhost:8484', 'content-type': 'application/x-www-form-urlencoded' }, 415],
      [{ origin: 'http://localhost:8484', 'content-type': '' }, 415],
    ]
    for (const [headers, status] of refused) expect([headers, (await pause(headers)).status]).toEqual([headers, status])
    expect(await client.queue('default').isPaused()).toBe(false)
    const preflight = await fetch(
      requestOf('OPTIONS', `${API}/queues/default/pause`, undefined, { origin: 'https://evil.test' }),
    )
    expect(preflight.headers.has('access-control-allow-origin')).toBe(false)
    expect((await pause({ origin: 'http://localhost:8484' })).status).toBe(200)
    expect((await pause({ 'sec-fetch-site': 'same-origin' })).status).toBe(200)
    // A program with a token of its own sends no origin.
    expect((await call('POST', `${API}/queues/default/resume`)).status).toBe(200)
  })

  it('even where no token is required', async () => {
    const { fetch, client } = await openHandler({ authorize: everybody })
    for (const headers of [{ origin: 'https://evil.test' }, { 'sec-fetch-site': 'cross-site' }]) {
      expect((await fetch(requestOf('POST', `${API}/queues/default/pause`, {}, headers))).status).toBe(403)
      expect((await fetch(requestOf('GET', `${API}/tasks`, undefined, headers))).status).toBe(403)
    }
    expect(await client.queue('default').isPaused()).toBe(false)
  })

  it('every answer has the headers that keep a browser safe', async () => {
    const { fetch } = await openHandler()
    for (const path of ['/health', `${API}/stats`, '/nothing', '/openapi.json']) {
      const { headers } = await fetch(requestOf('GET', path, undefined, { authorization: `Bearer ${TOKEN}` }))
      expect(Object.fromEntries(headers)).toMatchObject({
        'cache-control': 'no-store',
        'content-security-policy':
          "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; font-src 'self'; manifest-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff',
      })
      expect([...headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
    }
  })
})

describe('what can be done', () => {
  it('nothing is changed where it is read-only', async () => {
    const { fetch } = await openHandler({ readOnly: true, metrics })
    for (const { method, path } of operations()) {
      if (method === 'GET') continue
      const body = path.endsWith('/bulk/preview') ? { action: 'retry', query: {} } : {}
      const response = await fetch(requestOf(method, path, body, { authorization: `Bearer ${TOKEN}` }))
      const isPreview = path.endsWith('/preview')
      expect(`${method} ${path} ${response.status}`).toBe(`${method} ${path} ${isPreview ? 200 : 403}`)
    }
  })

  it('a bulk action needs the confirmation of a preview of the same tasks', async () => {
    const { call, client } = await openHandler()
    const { id } = await client.submit('a', 1, { maxRetries: 0 })
    await (await client.claim(id, { workerId: 'w' })).fail(new Error('no'))
    const { body } = await call('POST', `${API}/dead-letters/purge/preview`, { query: { type: 'b' } })
    const tries = [
      {},
      { query: { type: 'a' } },
      { query: {}, confirm: body.confirm },
      { query: { type: 'a' }, confirm: 'x.y' },
    ]
    for (const given of tries)
      expect((await call('POST', `${API}/dead-letters/purge`, given)).body.error.code).toBe('NOT_CONFIRMED')
    const other = await call('POST', `${API}/dead-letters/replay/preview`, { query: { type: 'a' } })
    const crossed = { query: { type: 'a' }, confirm: other.body.confirm }
    expect((await call('POST', `${API}/dead-letters/purge`, crossed)).status).toBe(409)
    expect((await client.get(id)).status).toBe('failed')
  })

  it('a lease belongs to the caller with its token, and no answer but the claim contains it', async () => {
    const { call, client } = await openHandler()
    const { id } = await client.submit('a', 1)
    const { body: lease } = await call('POST', `${API}/tasks/${id}/claim`, { workerId: 'one' })
    await client.submit('a', 2)
    const { body: other } = await call('POST', `${API}/claim`, { workerId: 'two' })
    // Not one counter for both: whoever has one token cannot guess the other.
    expect(sharedBeginning(lease.token, other.leases[0].token)).toBeLessThan(8)
    for (const move of ['heartbeat', 'complete', 'release']) {
      for (const token of ['', 'x', other.leases[0].token, lease.token.slice(0, -1)]) {
        const { body } = await call('POST', `${API}/tasks/${id}/${move}`, { token })
        expect([move, body.error?.code]).toEqual([move, 'STALE_LEASE'])
      }
    }
    const seen = [`/tasks/${id}`, '/tasks', `/tasks/${id}/history`, `/tasks/${id}/why`]
    for (const path of seen) expect(JSON.stringify((await call('GET', API + path)).body)).not.toContain(lease.token)
    expect((await call('POST', `${API}/tasks/${id}/complete`, { token: lease.token })).status).toBe(200)
    for (const path of seen) expect(JSON.stringify((await call('GET', API + path)).body)).not.toContain(lease.token)
  })

  it('page sizes are capped, bodies are bounded in length and depth, and everything is read as data only', async () => {
    const { call, client, fetch } = await openHandler()
    await client.submitMany(Array.from({ length: 210 }, (_, i) => ({ type: 'a', input: i })))
    expect((await call('GET', `${API}/tasks?limit=1000000000`)).body.tasks).toHaveLength(200)
    for (const limit of ['-1', '1e9', 'x', ''])
      expect((await call('GET', `${API}/tasks?limit=${limit}`)).status).toBe(400)
    const post = async (text: string): Promise<number> => (await call('POST', `${API}/tasks`, text)).status
    expect(await post(`{"type":"a","input":"${'x'.repeat(2_000_000)}"}`)).toBe(413)
    expect(await post(`{"type":"a","input":${'['.repeat(100_000)}${']'.repeat(100_000)}}`)).toBe(400)
    expect(await post(`{"type":"a","input":"${'[{'.repeat(300)}"}`)).toBe(201)
    for (const text of ['{', '[]', 'null', '"x"', '{"type":1,"input":1}', '{"input":1}'])
      expect([text, await post(text)]).toEqual([text, 400])
    // A body that announces no length is counted as it comes.
    let sent = 0
    const endless = new ReadableStream({
      pull: (controller) => {
        sent += 65_536
        controller.enqueue(new Uint8Array(65_536).fill(32))
      },
    })
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }
    const chunked = new Request(`http://localhost${API}/tasks`, {
      method: 'POST',
      headers,
      body: endless,
      duplex: 'half',
    } as RequestInit)
    expect((await fetch(chunked)).status).toBe(413)
    expect(sent).toBeLessThan(3_000_000)
    const polluted = '{"type":"a","input":{"__proto__":{"polluted":1}},"__proto__":{"polluted":1}}'
    expect(await post(polluted)).toBe(400)
    expect(
      await post('{"type":"a","input":{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}}'),
    ).toBe(201)
    expect(({} as { polluted?: number }).polluted).toBeUndefined()
    for (const path of ['constructor', '__proto__', 'toString'])
      expect((await call('GET', `${API}/jobs/${path}`)).status).toBe(404)
  })

  it('a server allows a hundred streams, and a closed one makes room', async () => {
    const { fetch } = await openHandler()
    const open = (signal?: AbortSignal): Promise<Response> => {
      const request = requestOf('GET', `${API}/changes`, undefined, { authorization: `Bearer ${TOKEN}` })
      return fetch(signal === undefined ? request : new Request(request, { signal }))
    }
    const first = new AbortController()
    expect((await open(first.signal)).status).toBe(200)
    for (let i = 1; i < 100; i++) await open()
    const refused = await open()
    expect([refused.status, await refused.json()]).toMatchObject([503, { error: { code: 'TOO_MANY_VIEWERS' } }])
    first.abort()
    expect((await open()).status).toBe(200)
  })

  it('a type with the name of something every object has finds no handler', async () => {
    const { call, client } = await openHandler()
    const types = ['constructor', '__proto__', 'toString', 'hasOwnProperty']
    for (const type of types) expect((await call('POST', `${API}/tasks`, { type, input: 1 })).status).toBe(201)
    await client
      .worker()
      .handle('a', () => {})
      .drain()
    expect(await client.count({ status: 'ready' })).toEqual({ count: types.length, capped: false })
  })

  it('a client that writes slowly does not keep others out', async () => {
    const client = await connect('memory:', { logger: silentLogger })
    const server = await listen(createHttpHandler(client, { authorize: everybody }), { host: '127.0.0.1', port: 0 })
    onTestFinished(async () => {
      await server.close()
      await client.close()
    })
    const sockets = Array.from({ length: 50 }, () => connectSocket(server.port, '127.0.0.1'))
    for (const socket of sockets) socket.write('GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ')
    for (const socket of sockets) socket.on('error', () => {})
    expect((await fetch(`http://127.0.0.1:${server.port}/health`)).status).toBe(200)
    for (const socket of sockets) socket.destroy()
  })
})

describe('what is seen', () => {
  const secret = 'canary-7f3a'

  const scene = async (options: Parameters<typeof openHandler>[0]) => {
    const lines: string[] = []
    const log = (message: string, facts?: object): void => void lines.push(message + JSON.stringify(facts ?? {}))
    const caller = await openHandler({ logger: { debug: log, info: log, warn: log, error: log }, ...options })
    const input = { user: 'ann', password: secret, deep: [{ apiToken: secret }] }
    const { id } = await caller.client.submit('login', input, { maxRetries: 0, tags: { password: secret, team: 'a' } })
    const lease = await caller.client.claim(id, { workerId: 'w' })
    await lease.renew({ progress: { password: secret } })
    await lease.fail(new Error(`refused ${secret}`))
    await caller.client.schedules.create({ id: 's', type: 'login', input, every: '1h' })
    return { ...caller, id, lines }
  }

  const everything = async (
    { fetch, id }: { fetch: (request: Request) => Promise<Response>; id: string },
    token: string,
  ): Promise<string> => {
    const paths = [
      '/tasks',
      `/tasks/${id}`,
      `/tasks/${id}/history`,
      `/tasks/${id}/why`,
      '/dead-letters/groups',
      '/schedules',
      '/schedules/s',
      '/queues',
      '/stats',
    ]
    const texts = paths.map(async (path) =>
      (await fetch(requestOf('GET', API + path, undefined, { authorization: `Bearer ${token}` }))).text(),
    )
    return (await Promise.all(texts)).join('\n')
  }

  it('a caller without the right to payloads sees none: no input, output, progress, error or reason', async () => {
    const token = 'the-token-of-a-viewer-0123456789'
    const tokens = new Tokens([{ token, rights: VIEWER }])
    const caller = await scene({ authorize: tokens.authorize, redact: ['password'] })
    const text = await everything(caller, token)
    expect(text).toContain('"payloads":"withheld"')
    expect(text).not.toContain(secret)
    expect(text).not.toContain('"ann"')
  })

  it('a guessed error is not confirmed to that caller: the fingerprints it sees are not those that it can compute', async () => {
    const token = 'the-token-of-a-viewer-0123456789'
    const tokens = new Tokens([{ token, rights: [...VIEWER, 'operate'] }])
    const { call } = await scene({ authorize: tokens.authorize })
    const ask = async (method: string, path: string, body?: object) =>
      (await call(method, API + path, body, { authorization: `Bearer ${token}` })).body
    const { fingerprint: guess } = fingerprintOf({ name: 'Error', message: `refused ${secret}` })
    const { groups } = await ask('GET', '/dead-letters/groups')
    expect(groups).toMatchObject([{ count: 1, pattern: '' }])
    const { fingerprint: shown } = groups[0]
    const found = async (fingerprint: string): Promise<readonly number[]> => [
      (await ask('GET', `/tasks?error=${fingerprint}`)).tasks.length,
      (await ask('GET', `/dead-letters?group=${fingerprint}`)).tasks.length,
      (await ask('GET', `/dead-letters/groups?group=${fingerprint}`)).groups.length,
      (await ask('POST', '/dead-letters/replay/preview', { query: { group: fingerprint } })).matched ?? 0,
      (await ask('POST', '/tasks/bulk/preview', { action: 'retry', query: { error: fingerprint } })).sample.length,
    ]
    expect(await found(guess)).toEqual([0, 0, 0, 0, 0])
    expect(await found(shown)).toEqual([1, 1, 1, 1, 1])
  })

  it('keys that match a pattern are hidden everywhere, and a worker still gets its task unredacted', async () => {
    const caller = await scene({ redact: ['pass*', '*TOKEN*'] })
    const text = (await everything(caller, TOKEN)).replaceAll(`refused ${secret}`, '')
    expect(text).toContain('"password":"[redacted]"')
    expect(text).toContain('"apiToken":"[redacted]"')
    expect(text).toContain('"user":"ann"')
    expect(text).not.toContain(secret)
    await caller.client.submit('login', { password: secret })
    const { body } = await caller.call('POST', `${API}/claim`, { workerId: 'w' })
    expect(body.leases[0].task.input).toEqual({ password: secret })
  })

  it('no payload and no token is logged, also when something breaks inside', async () => {
    const caller = await scene({})
    caller.client.get = () => Promise.reject(new Error('a fault'))
    const { body, status } = await caller.call('GET', `${API}/tasks/${caller.id}`)
    expect([status, body.error.code]).toEqual([500, 'INTERNAL'])
    expect(JSON.stringify(body)).not.toContain('a fault')
    await caller.call('POST', `${API}/tasks`, { type: 'a b', input: secret })
    expect(caller.lines.join('\n')).toContain('a fault')
    expect(caller.lines.join('\n')).not.toContain(secret)
    expect(caller.lines.join('\n')).not.toContain(TOKEN)
  })
})

const sharedBeginning = (a: string, b: string): number => {
  let at = 0
  while (at < a.length && a[at] === b[at]) at++
  return at
}
