/** Who calls: tokens with roles and names, sessions of browsers, and what histories say of them. docs/security.md names these tests. */
import { describe, expect, it } from 'vitest'
import { behindProxy, EVERYTHING, everybody, OPERATOR, Tokens, VIEWER, WORKER } from '../../src/http/index.ts'
import { API, type Caller, openHandler, requestOf } from './setup.ts'

const tokenOf = (name: string): string => `the-token-of-${name}-0123456789-0123456789`

const HOUR = 3_600_000

const cast = (now: () => number = Date.now) =>
  new Tokens(
    [
      { token: tokenOf('ann'), name: 'ann', rights: OPERATOR },
      { token: tokenOf('vic'), name: 'vic', rights: VIEWER },
      { token: tokenOf('py'), name: 'py', rights: WORKER },
      { token: tokenOf('mailer'), name: 'mailer', rights: ['work', 'submit'], queues: ['mail'] },
    ],
    { now },
  )

const open = async (now?: () => number) => {
  const tokens = cast(now)
  const caller = await openHandler({ authorize: tokens.authorize, tokens })
  const as = (name: string, method: string, path: string, body?: unknown) =>
    caller.call(method, API + path, body, { authorization: `Bearer ${tokenOf(name)}` })
  return { ...caller, as, tokens }
}

const logIn = async ({ fetch }: Pick<Caller, 'fetch'>, name: string): Promise<string> =>
  (await fetch(requestOf('GET', `/login?token=${tokenOf(name)}`))).headers.get('set-cookie')!.split(';')[0]!

/** As a page of the dashboard calls. */
const own = (cookie: string): Record<string, string> => ({ cookie, 'sec-fetch-site': 'same-origin' })

describe('a token', () => {
  it('of a worker claims tasks and ends them, and nothing else', async () => {
    const { as, client } = await open()
    const { id } = await client.submit('a', 1)
    const { body } = await as('py', 'POST', '/claim', { workerId: 'w' })
    const { token } = body.leases[0]
    expect((await as('py', 'POST', `/tasks/${id}/heartbeat`, { token })).status).toBe(200)
    expect((await as('py', 'POST', `/tasks/${id}/complete`, { token })).status).toBe(200)
    for (const [method, path] of [
      ['GET', '/tasks'],
      ['GET', `/tasks/${id}`],
      ['POST', '/tasks'],
      ['POST', `/tasks/${id}/cancel`],
      ['GET', '/changes'],
      ['GET', '/sessions'],
    ] as const)
      expect([path, (await as('py', method, path, { type: 'a', input: 1 })).status]).toEqual([path, 403])
  })

  it('for some queues does nothing in others', async () => {
    const { as, client } = await open()
    const other = await client.submit('a', 1)
    const { id } = await client.submit('a', 1, { queue: 'mail' })
    expect((await as('mailer', 'POST', '/claim', { workerId: 'w', queues: ['default'] })).status).toBe(403)
    expect((await as('mailer', 'POST', `/tasks/${other.id}/claim`, { workerId: 'w' })).status).toBe(403)
    const lease = await client.claim(other.id, { workerId: 'w' })
    expect((await as('mailer', 'POST', `/tasks/${other.id}/complete`, { token: lease.token })).status).toBe(403)
    const submitted = await as('mailer', 'POST', '/tasks', { type: 'a', input: 1 })
    expect(submitted.body.error).toMatchObject({ code: 'NOT_ALLOWED', message: expect.stringContaining("'default'") })
    const many = {
      tasks: [
        { type: 'a', input: 1, queue: 'mail' },
        { type: 'a', input: 1 },
      ],
    }
    expect((await as('mailer', 'POST', '/tasks/batch', many)).status).toBe(403)
    expect((await as('mailer', 'POST', '/tasks', { type: 'b', input: 1, queue: 'mail' })).status).toBe(201)
    // Without queues it claims from its own.
    const { body } = await as('mailer', 'POST', '/claim', { workerId: 'w', types: ['a'] })
    expect(body.leases[0].task.id).toBe(id)
    expect(() => new Tokens([{ token: tokenOf('x'), rights: OPERATOR, queues: ['mail'] }])).toThrow(
      /queues limit a token that works or submits/,
    )
  })

  it('gives its name to what it does: in histories, pauses, limits and jobs', async () => {
    const { as, client } = await open()
    const { body } = await as('ann', 'POST', '/tasks', { type: 'a', input: 1, delay: '1h' })
    await as('ann', 'POST', `/tasks/${body.id}/amend`, { priority: 3 })
    await as('ann', 'POST', `/tasks/${body.id}/cancel`)
    expect((await client.history(body.id)).map(({ by }) => by)).toEqual(['ann', 'ann', 'ann'])
    await as('ann', 'POST', '/queues/default/pause', { reason: 'a release' })
    await as('ann', 'POST', '/queues/default/limit', { concurrency: 3 })
    const { queue } = (await as('ann', 'GET', '/queues/default')).body
    expect([queue.pause.by, queue.limits.by]).toEqual(['ann', 'ann'])
    await as('ann', 'POST', '/tasks/bulk', { action: 'archive', ids: [body.id] })
    expect((await as('ann', 'GET', '/jobs')).body.jobs).toMatchObject([{ by: 'ann' }])
    await expect.poll(async () => (await client.history(body.id)).at(-1)).toMatchObject({ move: 'archive', by: 'ann' })
    expect((await as('ann', 'GET', '/info')).body).toMatchObject({ name: 'ann', session: false })
  })

  it('needs a name that can be shown', () => {
    for (const name of ['', 'a\nb', 'a\u202eb', 'x'.repeat(129)])
      expect(() => new Tokens([{ token: tokenOf('x'), rights: VIEWER, name }])).toThrow(/name of a token/)
  })
})

it('a pause under another name stops claims of the same process at once', async () => {
  const { as, client } = await open()
  await client.submit('a', 1)
  await as('ann', 'POST', '/queues/default/pause')
  expect((await as('py', 'POST', '/claim', { workerId: 'w' })).body.leases).toEqual([])
  await as('ann', 'POST', '/queues/default/resume')
  expect((await as('py', 'POST', '/claim', { workerId: 'w' })).body.leases).toHaveLength(1)
})

it('a user of a proxy is named in histories, and so is an anonymous caller', async () => {
  for (const [authorize, headers, name] of [
    [behindProxy('x-user'), { 'x-user': 'bob' }, 'bob@proxy'],
    [everybody, {}, 'anonymous'],
  ] as const) {
    const { call, client } = await openHandler({ authorize })
    const { body } = await call('POST', `${API}/tasks`, { type: 'a', input: 1 }, headers)
    expect((await client.history(body.id)).map(({ by }) => by)).toEqual([name])
  }
})

describe('a session', () => {
  it('is random: two logins with one token are two sessions, and no cookie survives a restart', async () => {
    const caller = await open()
    const [first, second] = [await logIn(caller, 'ann'), await logIn(caller, 'ann')]
    expect(first).not.toBe(second)
    const other = await open()
    expect((await other.fetch(requestOf('GET', `${API}/stats`, undefined, own(first)))).status).toBe(401)
  })

  it('is over 12 hours after its last use, and 7 days after the login', async () => {
    let now = 1_000_000
    const caller = await open(() => now)
    const status = async (cookie: string): Promise<number> =>
      (await caller.fetch(requestOf('GET', `${API}/info`, undefined, own(cookie)))).status
    const idle = await logIn(caller, 'vic')
    now += 12 * HOUR - 1
    expect(await status(idle)).toBe(200)
    now += 12 * HOUR
    expect(await status(idle)).toBe(401)
    const used = await logIn(caller, 'vic')
    for (let hours = 0; hours < 7 * 24 - 8; hours += 8) {
      now += 8 * HOUR
      expect(await status(used)).toBe(200)
    }
    now += 8 * HOUR
    expect(await status(used)).toBe(401)
  })

  it('ends when its browser logs out', async () => {
    const caller = await open()
    const cookie = await logIn(caller, 'ann')
    const info = () => caller.fetch(requestOf('GET', `${API}/info`, undefined, own(cookie)))
    expect(await (await info()).json()).toMatchObject({ name: 'ann', session: true })
    const out = await caller.fetch(requestOf('DELETE', `${API}/session`, undefined, own(cookie)))
    expect([out.status, out.headers.get('set-cookie')]).toEqual([204, expect.stringMatching(/=; .*Max-Age=0/)])
    expect((await info()).status).toBe(401)
  })

  it('is revoked by an operator, with its streams, and a page of another site cannot', async () => {
    const caller = await open()
    const victim = await logIn(caller, 'vic')
    const { body } = await caller.as('ann', 'GET', '/sessions')
    expect(body.sessions).toMatchObject([{ name: 'vic', isOwn: false }])
    expect(JSON.stringify(body)).not.toContain(victim.split('=')[1])
    const path = `${API}/sessions/${body.sessions[0].id}`
    const cookie = await logIn(caller, 'ann')
    const crossed = { cookie, 'sec-fetch-site': 'cross-site' }
    expect((await caller.fetch(requestOf('DELETE', path, undefined, crossed))).status).toBe(403)
    expect((await caller.as('vic', 'DELETE', `/sessions/${body.sessions[0].id}`)).status).toBe(403)
    const stream = await caller.fetch(requestOf('GET', `${API}/changes`, undefined, own(victim)))
    const read = stream.text()
    expect((await caller.fetch(requestOf('DELETE', path, undefined, own(cookie)))).status).toBe(204)
    // It ends: otherwise this would wait for ever.
    expect(await read).toContain('event: past')
    expect((await caller.fetch(requestOf('GET', `${API}/info`, undefined, own(victim)))).status).toBe(401)
  })

  it('has a Secure cookie behind a proxy that speaks https, if the proxy is trusted', async () => {
    for (const trustProxy of [true, false]) {
      const known = cast()
      const { fetch } = await openHandler({ authorize: known.authorize, tokens: known, trustProxy })
      const path = `/login?token=${tokenOf('ann')}`
      const cookie = async (headers: Record<string, string>): Promise<string> =>
        (await fetch(requestOf('GET', path, undefined, headers))).headers.get('set-cookie')!
      expect((await cookie({ 'x-forwarded-proto': 'https' })).endsWith('; Secure')).toBe(trustProxy)
      expect((await cookie({ 'x-forwarded-proto': 'http' })).endsWith('; Secure')).toBe(false)
      expect((await cookie({})).endsWith('; Secure')).toBe(false)
    }
  })
})

describe('streams', () => {
  it('of one caller are 20 at most, and others still get theirs', async () => {
    const { fetch } = await open()
    const watch = async (name: string): Promise<number> =>
      (await fetch(requestOf('GET', `${API}/changes`, undefined, { authorization: `Bearer ${tokenOf(name)}` }))).status
    for (let n = 0; n < 20; n++) expect(await watch('vic')).toBe(200)
    expect(await watch('vic')).toBe(503)
    expect(await watch('ann')).toBe(200)
  })

  it('are not opened by HEAD, which nobody would close', async () => {
    const { as } = await open()
    for (let n = 0; n < 30; n++) expect((await as('vic', 'HEAD', '/changes')).status).toBe(200)
    expect((await as('vic', 'HEAD', '/stats')).body).toBe('')
  })
})

it('everything is what the roles are made of', () => {
  for (const role of [VIEWER, OPERATOR, WORKER]) for (const right of role) expect(EVERYTHING).toContain(right)
})
