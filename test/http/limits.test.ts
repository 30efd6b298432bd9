/** Limits and groups over HTTP: workers in other languages obey them, and only an operator sets them. */
import { describe, expect, it } from 'vitest'
import { Tokens, VIEWER, WORKER } from '../../src/http/index.ts'
import { API, type Caller, openHandler, requestOf } from './setup.ts'

interface Held {
  readonly token: string
  readonly task: { readonly id: string; readonly group: string | null }
}

const claim = async ({ call }: Caller, workerId: string, limit = 5): Promise<Held[]> =>
  (await call('POST', `${API}/claim`, { workerId, limit })).body.leases

const complete = async ({ call }: Caller, { task, token }: Held): Promise<void> => {
  expect((await call('POST', `${API}/tasks/${task.id}/complete`, { token })).status).toBe(200)
}

describe('claims over HTTP', () => {
  it('of two workers never hold more than the limit of the queue together, and use it', async () => {
    const caller = await openHandler()
    const { body } = await caller.call('POST', `${API}/queues/default/limit`, { concurrency: 3 })
    expect(body).toMatchObject({ queue: 'default', limits: { concurrency: 3, by: 'test' } })
    await caller.client.submitMany(Array.from({ length: 40 }, (_, i) => ({ type: 'work', input: i })))
    const counts: number[] = []
    let done = 0
    const work = async (workerId: string): Promise<void> => {
      while (done < 40) {
        const held = await claim(caller, workerId)
        counts.push((await caller.client.count({ status: 'running' })).count)
        for (const one of held) {
          await complete(caller, one)
          done++
        }
      }
    }
    await Promise.all([work('py-1'), work('py-2')])
    expect(Math.max(...counts)).toBe(3)
  })

  it('take no more of a group than its places', async () => {
    const caller = await openHandler()
    await caller.call('POST', `${API}/queues/default/limit`, { perGroup: 1 })
    const groups = ['a', 'a', 'a', 'b', 'b']
    await caller.call('POST', `${API}/tasks/batch`, {
      tasks: groups.map((group) => ({ type: 'work', input: 1, group })),
    })
    const held = [...(await claim(caller, 'py-1')), ...(await claim(caller, 'py-2'))]
    expect(held.map(({ task }) => task.group).toSorted()).toEqual(['a', 'b'])
    await complete(caller, held.find(({ task }) => task.group === 'a')!)
    expect((await claim(caller, 'py-2')).map(({ task }) => task.group)).toEqual(['a'])
  })

  it('by id are refused with the limit that holds the task back', async () => {
    const caller = await openHandler()
    const { client, call } = caller
    await call('POST', `${API}/queues/default/limit`, { perGroup: 1 })
    const ids = await Promise.all([1, 2].map(async (n) => (await client.submit('work', n, { group: 'acme' })).id))
    await call('POST', `${API}/tasks/${ids[0]}/claim`, { workerId: 'py-1' })
    const refused = await call('POST', `${API}/tasks/${ids[1]}/claim`, { workerId: 'py-2' })
    expect(refused.status).toBe(409)
    expect(refused.body.error).toMatchObject({
      code: 'LIMIT_REACHED',
      details: { group: 'acme', reason: "group 'acme' has 1 of 1 running (py-1)" },
    })
    // A repeat by the holder pays nothing.
    expect((await call('POST', `${API}/tasks/${ids[0]}/claim`, { workerId: 'py-1' })).status).toBe(200)
  })

  it('start no more than a rate permits', async () => {
    const caller = await openHandler()
    await caller.call('POST', `${API}/queues/default/limit`, { rate: '2/1h', burst: 2 })
    await caller.client.submitMany([1, 2, 3, 4].map((input) => ({ type: 'work', input })))
    const held = [...(await claim(caller, 'py-1')), ...(await claim(caller, 'py-2'))]
    expect(held).toHaveLength(2)
  })
})

describe('limits of a queue', () => {
  it('are set, replaced and removed by an operator, and shown with the queue', async () => {
    const { call, client } = await openHandler()
    const set = (body: object) => call('POST', `${API}/queues/a%2Fb/limit`, body)
    expect((await set({ concurrency: 2, perGroup: 1 })).status).toBe(200)
    expect((await set({ rate: '10/s' })).body.limits).toMatchObject({ rate: '10/s' })
    expect(await client.queue('a/b').limits()).not.toHaveProperty('concurrency')
    expect((await call('GET', `${API}/queues`)).body.queues).toMatchObject([
      { queue: 'a/b', limits: { rate: '10/s' }, pausedGroups: [] },
    ])
    expect((await set({ none: true })).body).toEqual({ queue: 'a/b', limits: null })
    expect(await client.queue('a/b').limits()).toBeNull()
  })

  it('are not for a worker or a viewer to set', async () => {
    const [viewer, worker] = ['the-token-of-a-viewer-0123456789', 'the-token-of-a-worker-0123456789']
    const tokens = new Tokens([
      { token: viewer, rights: VIEWER },
      { token: worker, rights: WORKER },
    ])
    const { fetch, client } = await openHandler({ authorize: tokens.authorize })
    for (const token of [viewer, worker]) {
      const headers = { authorization: `Bearer ${token}` }
      const body = { concurrency: 1 }
      expect((await fetch(requestOf('POST', `${API}/queues/mail/limit`, body, headers))).status).toBe(403)
    }
    expect(await client.queue('mail').limits()).toBeNull()
  })

  it.each([
    [{}, 'limit', /names no limit/],
    [{ none: false }, 'limit', /names no limit/],
    [{ none: true, concurrency: 1 }, 'none', /give no others with it/],
    [{ concurrency: 0 }, 'concurrency', /concurrency must be/],
    [{ concurrency: 'many' }, 'body.concurrency', /must be integer/],
    [{ concurrency: null }, 'body.concurrency', /must be integer/],
    [{ perGroup: 1.5 }, 'body.perGroup', /must be integer/],
    [{ perGroup: 1, fair: false }, 'fair', /their groups always take turns/],
    [{ rate: 'often' }, 'rate', /such as '60\/1m'/],
    [{ rate: '0/1m' }, 'rate', /pause the queue to stop it/],
    [{ ratePerGroup: '1/2d' }, 'ratePerGroup', /1 second to 1 day/],
    [{ burst: 2 }, 'burst', /needs a rate/],
    [{ concurency: 2 }, 'body.concurency', /is not allowed here/],
  ])('%j is refused with its field, and nothing changes', async (body, field, message) => {
    const { call, client } = await openHandler()
    await client.queue('mail').limit({ concurrency: 7 })
    const answer = await call('POST', `${API}/queues/mail/limit`, body)
    expect(answer.status).toBe(400)
    expect(answer.body.error).toMatchObject({ details: { field }, message: expect.stringMatching(message) })
    expect(await client.queue('mail').limits()).toMatchObject({ concurrency: 7 })
  })

  it('with a duration that is none names the rate', async () => {
    const { call } = await openHandler()
    const answer = await call('POST', `${API}/queues/mail/limit`, { rate: '60/soon' })
    expect(answer.status).toBe(400)
    expect(answer.body.error.message).toContain('rate')
  })
})

describe('a group', () => {
  it('is paused and resumed by itself', async () => {
    const caller = await openHandler()
    const { call, client } = caller
    await client.submit('work', 1, { group: 'acme' })
    await client.submit('work', 2, { group: 'other' })
    const paused = await call('POST', `${API}/queues/default/pause`, { group: 'acme', reason: 'unpaid' })
    expect(paused.body).toEqual({ queue: 'default', group: 'acme', paused: true })
    expect((await call('GET', `${API}/queues`)).body.queues).toMatchObject([{ paused: false, pausedGroups: ['acme'] }])
    expect((await claim(caller, 'py-1')).map(({ task }) => task.group)).toEqual(['other'])
    const resumed = await call('POST', `${API}/queues/default/resume`, { group: 'acme' })
    expect(resumed.body).toEqual({ queue: 'default', group: 'acme', paused: false })
    expect((await claim(caller, 'py-1')).map(({ task }) => task.group)).toEqual(['acme'])
  })

  it('is paused by a worker that met a limit elsewhere', async () => {
    const caller = await openHandler()
    for (const group of ['acme', 'acme', 'other']) await caller.client.submit('work', 1, { group })
    const [held] = await claim(caller, 'py-1', 1)
    const sleep = { token: held!.token, delay: '1h', pause: 'group' }
    expect((await caller.call('POST', `${API}/tasks/${held!.task.id}/reschedule`, sleep)).status).toBe(200)
    expect(held!.task.group).toBe('acme')
    // Claims see a pause within a second; a reader of the queues sees it at once, and so does the server then.
    expect((await caller.call('GET', `${API}/queues`)).body.queues).toMatchObject([{ pausedGroups: ['acme'] }])
    expect((await claim(caller, 'py-2')).map(({ task }) => task.group)).toEqual(['other'])
  })

  it('selects tasks and dead letters; of dead letters it is taskGroup, because a group is an error there', async () => {
    const { call, client } = await openHandler()
    for (const group of ['acme', 'acme', 'other']) {
      const { id } = await client.submit('work', 1, { group, maxRetries: 0 })
      await (await client.claim(id, { workerId: 'w' })).fail(new Error('boom'))
    }
    const { body: found } = await call('GET', `${API}/tasks?group=acme&status=dead`)
    expect(found.tasks).toHaveLength(2)
    expect((await call('GET', `${API}/tasks/count?group=other`)).body.count).toBe(1)
    const { body } = await call('GET', `${API}/dead-letters/groups?taskGroup=acme`)
    expect(body.groups).toMatchObject([{ count: 2 }])
    expect(
      (await call('GET', `${API}/dead-letters/groups?group=${body.groups[0].fingerprint}`)).body.groups[0],
    ).toMatchObject({ count: 3 })
    const { fingerprint } = body.groups[0]
    const list = async (query: string) => (await call('GET', `${API}/dead-letters?${query}`)).body
    expect((await list(`group=${fingerprint}`)).tasks).toHaveLength(3)
    expect((await list(`group=${fingerprint}&taskGroup=acme`)).tasks).toHaveLength(2)
    const first = await list(`group=${fingerprint}&limit=2`)
    expect(first.tasks).toMatchObject([{ status: 'failed', payloads: 'omitted' }, {}])
    expect((await list(`group=${fingerprint}&limit=2&cursor=${first.cursor}`)).tasks).toHaveLength(1)
    expect(await list('group=0000000000000000')).toEqual({ tasks: [], cursor: null })
    const query = { taskGroup: 'other' }
    expect((await call('POST', `${API}/dead-letters/purge/preview`, { query })).body.matched).toBe(1)
  })
})

it('a submit with coalesce joins the task that waits', async () => {
  const { call } = await openHandler()
  const trigger = (input: number) =>
    call('POST', `${API}/tasks`, { type: 'index', input, coalesce: { key: 'doc-7', delay: '1h' } })
  const first = (await trigger(1)).body
  const second = (await trigger(2)).body
  expect(second).toMatchObject({ id: first.id, coalesced: true, input: 2 })
  const bad = await call('POST', `${API}/tasks`, { type: 'index', input: 1, coalesce: { key: 'k', maxwait: '1m' } })
  expect(bad).toMatchObject({ status: 400, body: { error: { details: { field: 'body.coalesce.maxwait' } } } })
})
