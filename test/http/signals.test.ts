/** Signals over HTTP, and how a task with steps is shown. */
import { expect, it } from 'vitest'
import { OPERATOR, Tokens, VIEWER, WORKER } from '../../src/http/index.ts'
import type { Client } from '../../src/index.ts'
import { API, openHandler, requestOf, TOKEN } from './setup.ts'

/** A task that has recorded one step, and waits for the signal `approved`. */
const waiting = async (client: Client, charged: unknown = { receipt: 7 }): Promise<string> => {
  const { id } = await client.submit('order', { total: 3 })
  const worker = client.worker().handle('order', async (_, ctx) => {
    await ctx.step('charge', () => charged)
    return ctx.waitFor('approved', { timeout: '1d' })
  })
  await worker.drain()
  expect((await client.get(id)).parked).toMatchObject({ step: 'approved', kind: 'signal' })
  return id
}

it('a signal makes the task that waits for it due, and its handler gets the value', async () => {
  const { client, call } = await openHandler()
  const id = await waiting(client)
  const before = (await call('GET', `${API}/tasks/${id}`)).body
  expect(before).toMatchObject({
    status: 'pending',
    view: 'parked',
    parked: { step: 'approved', kind: 'signal', signal: 'approved', until: expect.stringMatching(/^\d{4}-.*Z$/) },
    generation: 0,
    steps: [
      { name: 'charge', kind: 'step', status: 'done', value: { receipt: 7 } },
      { name: 'approved', kind: 'signal', status: 'waiting', signal: 'approved' },
    ],
    signals: [],
  })
  const { status, body } = await call('POST', `${API}/tasks/${id}/signal`, { name: 'approved', value: { by: 'ann' } })
  expect([status, body.view]).toEqual([200, 'ready'])
  expect(body.signals).toMatchObject([{ name: 'approved', value: { by: 'ann' }, by: 'test' }])
  await client
    .worker()
    .handle('order', (_, ctx) => ctx.waitFor('approved'))
    .drain()
  expect((await call('GET', `${API}/tasks/${id}`)).body).toMatchObject({
    status: 'completed',
    output: { by: 'ann' },
    signals: [],
  })
})

it('a repeat with the same id is kept once, and bytes stay bytes', async () => {
  const { client, call } = await openHandler()
  const { id } = await client.submit('order', 1)
  const signal = { name: 'file', value: 'AP8=', encoding: 'base64', signalId: 'upload-1' }
  for (let i = 0; i < 3; i++) expect((await call('POST', `${API}/tasks/${id}/signal`, signal)).status).toBe(200)
  const { signals } = await client.get(id)
  expect(signals).toMatchObject([{ id: 'upload-1', name: 'file', value: new Uint8Array([0, 255]) }])
  expect((await call('GET', `${API}/tasks/${id}`)).body.signals[0].value).toBe('AP8=')
})

it('a task that has ended takes no signal, and a signal needs a name', async () => {
  const { client, call } = await openHandler()
  const { id } = await client.submit('order', 1)
  const refused = async (body: unknown): Promise<unknown[]> => {
    const answer = await call('POST', `${API}/tasks/${id}/signal`, body)
    return [answer.status, answer.body.error.code]
  }
  expect(await refused({})).toEqual([400, 'INVALID_OPTION'])
  expect(await refused({ name: '' })).toEqual([400, 'INVALID_OPTION'])
  expect(await refused({ name: 'a', colour: 'red' })).toEqual([400, 'INVALID_OPTION'])
  await client.cancel(id)
  expect(await refused({ name: 'approved' })).toEqual([409, 'TASK_ENDED'])
})

it('needs the right to signal, which an operator has, and a worker and a viewer have not', async () => {
  const [viewer, worker, operator, relay] = ['the-viewer', 'the-worker', 'the-operator', 'the-relay'].map(
    (name) => `${name}-0123456789-0123456789`,
  )
  const tokens = new Tokens([
    { token: viewer!, rights: VIEWER },
    { token: worker!, rights: WORKER },
    { token: operator!, rights: OPERATOR },
    { token: relay!, rights: ['signal'] },
  ])
  const { client, fetch } = await openHandler({ authorize: tokens.authorize })
  const { id } = await client.submit('order', 1)
  const post = async (token: string, path: string): Promise<number> =>
    (await fetch(requestOf('POST', `${API}/tasks/${id}/${path}`, { name: 'go' }, { authorization: `Bearer ${token}` })))
      .status
  expect(await post(viewer!, 'signal')).toBe(403)
  expect(await post(worker!, 'signal')).toBe(403)
  expect(await post(operator!, 'signal')).toBe(200)
  expect(await post(relay!, 'signal')).toBe(200)
  expect(await post(relay!, 'cancel')).toBe(403)
})

it('the timeline has moves, steps and signals in the order in which they happened, without values', async () => {
  const { client, call } = await openHandler()
  const id = await waiting(client)
  await client.signal(id, 'approved', { by: 'ann' }, { signalId: 's-1' })
  await client
    .worker()
    .handle('order', (_, ctx) => ctx.waitFor('approved'))
    .drain()
  const { history, timeline } = (await call('GET', `${API}/tasks/${id}/history`)).body
  const told = timeline.map(({ move, kind, name }: Record<string, string>) => move ?? `${kind} ${name}`)
  expect(told).toEqual([
    'submit',
    'claim',
    'step charge',
    'wait approved',
    'park',
    'signal approved',
    'claim',
    'take approved',
    'complete',
  ])
  expect(timeline.filter((one: object) => 'move' in one)).toEqual(history)
  expect(timeline[2]).toEqual({ kind: 'step', name: 'charge', at: timeline[2].at, size: 13 })
  expect(timeline[5]).toMatchObject({ signalId: 's-1', by: 'test' })
})

it('who may not see payloads sees steps and signals without their values; secret keys are hidden', async () => {
  const viewer = 'the-viewer-0123456789-0123456789'
  const tokens = new Tokens([
    { token: viewer, rights: VIEWER },
    { token: TOKEN, rights: ['read', 'payloads'] },
  ])
  const { client, fetch } = await openHandler({ authorize: tokens.authorize, redact: ['password'] })
  const id = await waiting(client, { password: 'hunter2', user: 'ann' })
  await client.signal(id, 'other', { password: 'hunter2', user: 'ann' })
  const read = async (token: string): Promise<string> => {
    const paths = [`/tasks/${id}`, `/tasks/${id}/history`]
    const get = async (path: string): Promise<string> =>
      (await fetch(requestOf('GET', API + path, undefined, { authorization: `Bearer ${token}` }))).text()
    return (await Promise.all(paths.map(get))).join()
  }
  expect(await read(viewer)).toContain('"name":"charge","kind":"step"')
  expect(await read(viewer)).not.toMatch(/hunter2|ann/)
  expect(await read(TOKEN)).toContain('"value":{"password":"[redacted]","user":"ann"}')
  expect(await read(TOKEN)).not.toContain('hunter2')
})

it('parked tasks are listed, counted and part of the statistics', async () => {
  const { client, call } = await openHandler()
  const id = await waiting(client)
  await client.submit('order', 2, { delay: '1h' })
  expect((await call('GET', `${API}/tasks?status=parked`)).body.tasks).toMatchObject([{ id, view: 'parked' }])
  expect((await call('GET', `${API}/tasks/count?status=parked`)).body.count).toBe(1)
  expect((await call('GET', `${API}/stats`)).body.totals).toMatchObject({ parked: 1, scheduled: 1 })
  expect((await call('GET', `${API}/tasks/${id}/why`)).body.sentence).toMatch(/waits for signal 'approved' until/)
})
