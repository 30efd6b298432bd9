/** The OpenAPI document is true: every operation in it answers, and every answer is what it says. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { expect, it } from 'vitest'
import { type Answer, API, type Caller, openHandler, requestOf, TOKEN } from './setup.ts'

interface Operation {
  readonly operationId: string
  /** Only of routes: not of what the server answers besides. */
  readonly 'x-right'?: string
  readonly requestBody?: { readonly content: Record<string, Content> }
  readonly responses: Record<string, { content?: Record<string, Content> }>
}

interface Content {
  readonly schema: object
  readonly example?: unknown
}

type Document = { readonly paths: Record<string, Record<string, Operation>>; readonly components: object }

const ajv = new Ajv2020({ strict: false, allErrors: true })
;(addFormats as unknown as (one: Ajv2020) => void)(ajv)

/** Calls, and checks what comes against the document. Remembers which operations have answered with success. */
const checkedCaller = async () => {
  const caller = await openHandler({ metrics: async () => ({ type: 'text/plain', text: '' }) })
  const document: Document = (await caller.call('GET', '/openapi.json')).body
  ajv.removeSchema('doc')
  ajv.addSchema({ ...document, $id: 'doc' }, 'doc')
  const answered = new Set<string>()
  const find = (method: string, path: string): [string, Operation] => {
    const bare = path.slice(API.length).split('?')[0]!
    const fitting = Object.keys(document.paths)
      .filter((known) => new RegExp(`^${known.replace(/\{\w+\}/g, '[^/]+')}$`).test(bare))
      // /tasks/count before /tasks/{id}.
      .sort((a, b) => a.split('{').length - b.split('{').length)
    const found = fitting.find((known) => document.paths[known]![method.toLowerCase()])
    if (found === undefined) throw new Error(`${method} ${path} is not in the document`)
    return [found, document.paths[found]![method.toLowerCase()]!]
  }
  const call = async (method: string, path: string, body?: unknown): Promise<Answer> => {
    const answer = await caller.call(method, API + path, body)
    const [template, operation] = find(method, API + path)
    const told = operation.responses[String(answer.status)]
    if (told === undefined)
      throw new Error(
        `${operation.operationId} answered ${answer.status}, which is not in the document: ${JSON.stringify(answer.body)}`,
      )
    const pointer = `${template.replaceAll('~', '~0').replaceAll('/', '~1')}/${method.toLowerCase()}/responses/${answer.status}`
    if (told.content?.['application/json'] !== undefined) {
      const validate = ajv.compile({
        $ref: `doc#/paths/${encodeURIComponent(pointer).replaceAll('%2F', '/')}/content/application~1json/schema`,
      })
      if (!validate(answer.body)) throw new Error(`${operation.operationId}: ${ajv.errorsText(validate.errors)}`)
    } else expect(answer.body).toBe('')
    if (answer.status < 300) answered.add(operation.operationId)
    return answer
  }
  return { caller, document, call, answered }
}

const die = async ({ client }: Caller, type: string): Promise<string> => {
  const { id } = await client.submit(type, { a: 1 }, { maxRetries: 0 })
  const lease = await client.claim(id, { workerId: 'w' })
  await lease.fail(new Error('card 4242 refused'))
  return id
}

it('every operation of the document answers, and as it says', async () => {
  const { caller, document, call, answered } = await checkedCaller()
  const { client } = caller

  // Submit and look.
  const { body: task } = await call('POST', '/tasks', {
    type: 'mail',
    input: { to: 'ann' },
    tags: { team: 'a' },
    idempotencyKey: 'k',
    ttl: '1h',
  })
  expect(task).toMatchObject({ status: 'pending', view: 'ready', input: { to: 'ann' } })
  const many = await call('POST', '/tasks/batch', {
    tasks: [
      { type: 'mail', input: 1 },
      { type: 'bad type', input: 1 },
    ],
  })
  expect(many.body.results).toMatchObject([{ task: { input: 1 } }, { error: { code: 'INVALID_TASK' } }])
  expect((await call('GET', '/tasks?status=ready,running&tag=team=a&limit=5')).body.tasks).toHaveLength(1)
  expect((await call('GET', '/tasks/count?queue=default')).body).toEqual({ count: 2, capped: false })
  expect((await call('GET', '/tasks/by-key?key=k')).body.id).toBe(task.id)
  expect((await call('GET', `/tasks/${task.id}`)).body.history).toMatchObject([{ move: 'submit', by: 'test' }])
  await call('GET', `/tasks/${task.id}/history`)
  expect((await call('GET', `/tasks/${task.id}/why`)).body.reason).toBe('no-worker')

  // Work.
  const { body: claimed } = await call('POST', '/claim', { workerId: 'py-1', limit: 1 })
  const [{ token, fence }] = claimed.leases
  expect(fence).toBe(1)
  await call('POST', `/tasks/${task.id}/heartbeat`, { token, progress: { done: 3 } })
  expect((await call('GET', `/tasks/${task.id}`)).body).toMatchObject({
    progress: { done: 3 },
    lease: { workerId: 'py-1' },
  })
  expect((await call('POST', `/tasks/${task.id}/reschedule`, { token, delay: 0 })).body.status).toBe('pending')
  const again = async (): Promise<string> =>
    (await call('POST', `/tasks/${task.id}/claim`, { workerId: 'py-1' })).body.token
  await call('POST', `/tasks/${task.id}/release`, { token: await again() })
  expect(
    (await call('POST', `/tasks/${task.id}/complete`, { token: await again(), output: { ok: true } })).body.status,
  ).toBe('completed')
  const failing = await client.submit('mail', 2, { maxRetries: 0 })
  const { body: lease } = await call('POST', `/tasks/${failing.id}/claim`, { workerId: 'py-2' })
  await call('POST', `/tasks/${failing.id}/fail`, {
    token: lease.token,
    error: { name: 'ValueError', message: 'no', stack: 'Traceback' },
  })
  expect((await client.get(failing.id)).lastError).toMatchObject({
    name: 'ValueError',
    message: 'no',
    stack: 'Traceback',
  })

  // Move.
  await call('POST', `/tasks/${failing.id}/replay`, {})
  await call('POST', `/tasks/${failing.id}/cancel`, { reason: 'not wanted' })
  await call('POST', `/tasks/${failing.id}/retry`, {})
  await call('POST', `/tasks/${failing.id}/amend`, {
    priority: 5,
    delay: '1h',
    expiresAt: null,
    input: 'AP8=',
    encoding: 'base64',
    tags: { plan: 'b' },
  })
  await call('POST', `/tasks/${failing.id}/run-now`, {})
  expect((await client.get(failing.id)).input).toEqual(new Uint8Array([0, 255]))
  await call('POST', `/tasks/${failing.id}/expire`, {})
  await call('POST', `/tasks/${failing.id}/archive`, {})
  await call('POST', `/tasks/${failing.id}/unarchive`, {})
  expect((await call('DELETE', `/tasks/${failing.id}`)).status).toBe(204)

  // Signal, and read a task with steps.
  const { id: order } = await client.submit('order', null)
  await client
    .worker()
    .handle('order', async (_, ctx) => {
      await ctx.step('charge', () => 7)
      await Promise.all([ctx.waitFor('approved'), ctx.sleep('remind', '1d')])
    })
    .drain()
  await call('POST', `/tasks/${order}/signal`, { name: 'other', value: 1, signalId: 's' })
  expect((await call('GET', `/tasks/${order}`)).body.steps).toHaveLength(3)
  await call('GET', `/tasks/${order}/history`)
  await call('GET', '/tasks?status=parked')

  const { id: stepped } = await client.submit('stepped', null)
  const { body: held } = await call('POST', `/tasks/${stepped}/claim`, { workerId: 'py-3' })
  await call('POST', `/tasks/${stepped}/step`, { token: held.token, name: 'a' })
  await call('POST', `/tasks/${stepped}/step`, { token: held.token, name: 'a', value: 'AA==', encoding: 'base64' })
  await call('POST', `/tasks/${stepped}/steps`, { token: held.token })
  await call('POST', `/tasks/${stepped}/wait-for`, { token: held.token, name: 'b', timeout: 0 })
  await call('POST', `/tasks/${stepped}/sleep`, { token: held.token, name: 'c', duration: '1h' })

  // Dead letters.
  await die(caller, 'pay')
  const dead = await die(caller, 'pay')
  const { body: found } = await call('GET', '/dead-letters/groups')
  expect(found.groups).toMatchObject([{ count: 2, name: 'Error', types: ['pay'] }])
  const query = { group: found.groups[0].fingerprint }
  expect((await call('GET', `/dead-letters?group=${query.group}`)).body.tasks).toHaveLength(2)
  const { body: preview } = await call('POST', '/dead-letters/replay/preview', { query })
  expect(preview.matched).toBe(2)
  const { body: job } = await call('POST', '/dead-letters/replay', { query, confirm: preview.confirm })
  await expect
    .poll(async () => (await call('GET', `/jobs/${job.id}`)).body)
    .toMatchObject({ state: 'done', report: { replayed: 2 } })
  await call('POST', `/jobs/${job.id}/stop`, {})
  await (await client.claim(dead, { workerId: 'w' })).fail(new Error('again'))
  await call('POST', '/dead-letters/purge/preview', { ids: [dead] })
  await call('POST', '/dead-letters/purge', { ids: [dead] })

  // Many.
  const archiving = { action: 'archive', query: { status: 'completed' } }
  const { body: archive } = await call('POST', '/tasks/bulk/preview', archiving)
  expect(archive).toMatchObject({ matched: 1, sample: [{ id: task.id }] })
  await call('POST', '/tasks/bulk', { ...archiving, confirm: archive.confirm })
  expect((await call('GET', '/jobs')).body.jobs).toMatchObject([
    { name: 'archive' },
    { name: 'purge' },
    { name: 'replay' },
  ])

  // Schedules.
  await call('POST', '/schedules', {
    id: 'nightly',
    type: 'report',
    input: {},
    cron: '0 3 * * *',
    timezone: 'Europe/Berlin',
  })
  await call('GET', '/schedules')
  await call('GET', '/schedules/nightly')
  await call('PATCH', '/schedules/nightly', { overlap: 'allow' })
  expect((await call('GET', '/schedules/nightly/next?count=3')).body.slots).toHaveLength(3)
  await call('POST', '/schedules/nightly/pause', {})
  await call('POST', '/schedules/nightly/resume', {})
  await call('POST', '/schedules/nightly/trigger', {})
  await call('DELETE', '/schedules/nightly')

  // The whole.
  await call('POST', '/queues/a%2Fb/pause', { reason: 'too much' })
  expect(await client.queue('a/b').isPaused()).toBe(true)
  await call('POST', '/queues/a%2Fb/resume', {})
  await call('POST', '/queues/a%2Fb/pause', { group: 'acme' })
  await call('POST', '/queues/a%2Fb/resume', { group: 'acme' })
  await call('POST', '/queues/a%2Fb/limit', { concurrency: 2, perGroup: 1, fair: true, rate: '60/1m', burst: 2 })
  for (const path of [
    '/queues',
    '/stats',
    '/workers',
    '/info',
    '/doctor',
    '/queues/a%2Fb',
    '/charts',
    '/charts?range=7d&queue=default',
  ])
    await call('GET', path)
  expect((await call('GET', '/sessions')).body.sessions).toEqual([])
  await caller.fetch(requestOf('GET', `/login?token=${TOKEN}`))
  const { body: logins } = await call('GET', '/sessions')
  expect(logins.sessions).toMatchObject([{ name: null, isOwn: false }])
  await call('DELETE', `/sessions/${logins.sessions[0].id}`)
  expect((await call('DELETE', `/sessions/${logins.sessions[0].id}`)).body.error.code).toBe('SESSION_NOT_FOUND')
  expect((await call('GET', '/tasks?fields=all&limit=1')).body.tasks[0].payloads).toBe('shown')
  expect((await call('GET', '/tasks/nonsense')).body.error.code).toBe('INVALID_TASK')
  expect((await call('GET', `/tasks/${crypto.randomUUID()}`)).status).toBe(404)

  const all = Object.values(document.paths).flatMap((path) =>
    Object.values(path).flatMap((one) => (one['x-right'] === undefined ? [] : [one.operationId])),
  )
  expect([...answered, 'changes'].sort()).toEqual(all.sort())
})

it('its examples are valid, and every body that needs something has one', async () => {
  const { document } = await checkedCaller()
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, { operationId }]) => operationId !== undefined)
      .map(([method, one]) => ({ at: `${path.replaceAll('/', '~1')}/${method}`, ...one })),
  )
  const check = (at: string, { example }: Content): void => {
    const validate = ajv.compile({
      $ref: `doc#/paths/${encodeURIComponent(at).replaceAll('%2F', '/')}/content/application~1json/schema`,
    })
    if (!validate(example)) throw new Error(`${at}: ${ajv.errorsText(validate.errors)}`)
  }
  let checked = 0
  for (const { at, operationId, requestBody, responses } of operations) {
    const body = requestBody?.content['application/json']
    const { required = [] } = (body?.schema ?? {}) as { required?: readonly string[] }
    if (required.length > 0) expect([operationId, body!.example]).toEqual([operationId, expect.anything()])
    if (body?.example !== undefined) check(`${at}/requestBody`, body)
    for (const [status, { content }] of Object.entries(responses)) {
      const answer = content?.['application/json']
      if (answer?.example === undefined) continue
      check(`${at}/responses/${status}`, answer)
      checked++
    }
  }
  expect(checked).toBeGreaterThan(5)
  for (const path of ['/health', '/metrics', '/session', '/login', '/openapi.json'])
    expect(Object.keys(document.paths)).toContain(path)
})

it('routes that are not in the document do not exist, and a wrong method names the allowed ones', async () => {
  const { call } = await openHandler()
  expect(await call('GET', `${API}/nothing`)).toMatchObject({ status: 404, body: { error: { code: 'NO_SUCH_ROUTE' } } })
  const wrong = await call('DELETE', `${API}/tasks`)
  expect(wrong).toMatchObject({ status: 405, body: { error: { code: 'WRONG_METHOD' } } })
  expect(wrong.headers.get('allow')).toBe('POST, GET')
  expect(await call('GET', `${API}/tasks?colour=red`)).toMatchObject({
    status: 400,
    body: { error: { details: { field: 'colour' } } },
  })
  expect(await call('POST', `${API}/tasks`, { type: 'a', input: 1, colour: 'red' })).toMatchObject({
    status: 400,
    body: { error: { code: 'INVALID_OPTION' } },
  })
})

it('bytes go in and come out as base64', async () => {
  const { call } = await openHandler()
  const input = Buffer.from([0, 255, 7]).toString('base64')
  const { body } = await call('POST', `${API}/tasks`, { type: 'a', input, encoding: 'base64' })
  expect(body).toMatchObject({ input, encoding: 'base64' })
  expect((await call('POST', `${API}/tasks`, { type: 'a', input: '%%', encoding: 'base64' })).status).toBe(400)
})

it('a claim that waits is answered when work comes', async () => {
  const { call, client } = await openHandler()
  const waiting = call('POST', `${API}/claim`, { workerId: 'w', wait: '20s' })
  await client.submit('late', null)
  expect((await waiting).body.leases).toMatchObject([{ task: { type: 'late' } }])
})

it('concurrent claims share one claim on the store, and no task is leased twice', async () => {
  const { call, client } = await openHandler()
  await client.submitMany(Array.from({ length: 20 }, (_, i) => ({ type: 'a', input: i })))
  const answers = await Promise.all(Array.from({ length: 30 }, () => call('POST', `${API}/claim`, { workerId: 'w' })))
  const ids = answers.flatMap(({ body }) => body.leases.map((lease: { task: { id: string } }) => lease.task.id))
  expect(new Set(ids).size).toBe(20)
  expect(ids).toHaveLength(20)
  const tokens = answers.flatMap(({ body }) => body.leases.map((lease: { token: string }) => lease.token))
  expect(new Set(tokens).size).toBe(20)
})

it('viewers share one follower, and see what other processes do', async () => {
  const { client, fetch } = await openHandler()
  let followers = 0
  const { changes } = client
  client.changes = (options) => {
    followers++
    return changes.call(client, options)
  }
  const leave = new AbortController()
  const watch = async (path: string, until: string): Promise<string> => {
    const request = new Request(requestOf('GET', API + path, undefined, { authorization: `Bearer ${TOKEN}` }), {
      signal: leave.signal,
    })
    const response = await fetch(request)
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    let text = ''
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      text += chunk
      if (text.includes(until)) return text
    }
    return text
  }
  const all = watch('/changes', 'event: changes')
  const some = watch('/changes?type=b', '"type":"b"')
  await client.submit('a', { secret: 'not in a change' })
  await client.submit('b', null)
  expect(await all).toMatch(/event: past[\s\S]*event: changes\ndata: \{"changes":\[\{"id"/)
  expect(await some).not.toMatch(/"type":"a"/)
  expect(await all).not.toContain('not in a change')
  expect(followers).toBe(1)
  leave.abort()
})

it('mounts below a path of the caller’s choice', async () => {
  const { call } = await openHandler({ basePath: '/queue' })
  expect((await call('GET', `/queue${API}/stats`)).status).toBe(200)
  expect((await call('GET', '/queue/openapi.json')).body.servers).toEqual([{ url: `/queue${API}` }])
  expect((await call('GET', `/queue/login?token=${TOKEN}`)).headers.get('location')).toBe('/queue/')
  expect((await call('GET', `${API}/stats`)).status).toBe(404)
  expect((await call('DELETE', `/queue${API}/tasks`)).status).toBe(405)
})

it('nothing is followed or counted while there are no viewers', async () => {
  const { client, fetch } = await openHandler()
  let following = 0
  const { changes } = client
  client.changes = (options) => {
    following++
    options?.signal?.addEventListener('abort', () => following--)
    return changes.call(client, options)
  }
  const open = async (): Promise<() => void> => {
    const leave = new AbortController()
    const request = requestOf('GET', `${API}/changes`, undefined, { authorization: `Bearer ${TOKEN}` })
    await fetch(new Request(request, { signal: leave.signal }))
    return () => leave.abort()
  }
  expect(following).toBe(0)
  const [first, second] = [await open(), await open()]
  expect(following).toBe(1)
  first()
  expect(following).toBe(1)
  second()
  expect(following).toBe(0)
  const third = await open()
  expect(following).toBe(1)
  third()
})
