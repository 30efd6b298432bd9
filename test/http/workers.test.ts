/** Workers that claim over HTTP: their leases keep the length that they were claimed with, and others see that they are there. */
import { expect, it } from 'vitest'
import { openHandler, requestOf, TOKEN } from './setup.ts'

it('a heartbeat with the token alone keeps the length of the claim, and so does heartbeatEvery', async () => {
  const { client, call } = await openHandler()
  const { id } = await client.submit('work', 1)
  const { body } = await call('POST', '/api/v1/claim', { workerId: 'py-1', leaseTtl: '60s' })
  expect(body.leases[0]).toMatchObject({ heartbeatEvery: 20_000 })
  const { token } = body.leases[0]
  expect((await call('POST', `/api/v1/tasks/${id}/heartbeat`, { token })).status).toBe(200)
  const { lease } = await client.get(id)
  expect(lease!.expiresAt - (await client.now())).toBeGreaterThan(55_000)
  const again = (await call('POST', `/api/v1/tasks/${id}/claim`, { workerId: 'py-1' })).body
  expect(again).toMatchObject({ token, heartbeatEvery: 20_000 })
  expect(Date.parse(again.expiresAt) - (await client.now())).toBeGreaterThan(55_000)
})

it('a claim over several queues takes turns, so that a full queue does not starve the others', async () => {
  const { client, call } = await openHandler()
  for (let n = 0; n < 10; n++) await client.submit('work', n, { queue: 'full' })
  await client.submit('work', 'the one', { queue: 'small' })
  const claimed: string[] = []
  for (let n = 0; n < 2; n++) {
    const { body } = await call('POST', '/api/v1/claim', { workerId: 'py-1', queues: ['full', 'small'] })
    claimed.push(body.leases[0].task.queue)
  }
  expect(claimed.sort()).toEqual(['full', 'small'])
})

it('a worker that claims is listed, and `why` knows that it serves the queue', async () => {
  const { client, call } = await openHandler()
  await call('POST', '/api/v1/claim', { workerId: 'py-1', queues: ['media'], types: ['thumbnail'] })
  await expect
    .poll(() => client.workers())
    .toMatchObject([{ id: 'py-1', queues: ['media'], types: ['thumbnail'], via: 'http' }])
  const served = await client.submit('thumbnail', 1, { queue: 'media' })
  expect((await client.why(served.id)).reason).not.toBe('no-worker')
  const other = await client.submit('other', 1, { queue: 'media' })
  expect((await client.why(other.id)).reason).toBe('no-worker')
  await call('POST', '/api/v1/claim', { workerId: 'py-2', queues: ['media'] })
  await expect.poll(async () => (await client.workers()).length).toBe(2)
  expect((await client.why(other.id)).reason).not.toBe('no-worker')
})

it('a heartbeat tells that a worker lives, however long its run takes', async () => {
  const { client, call } = await openHandler()
  const { id } = await client.submit('work', 1)
  const { token } = (await call('POST', '/api/v1/claim', { workerId: 'py-1' })).body.leases[0]
  const told: string[] = []
  const heardOf = client.heardOfWorker.bind(client)
  client.heardOfWorker = (worker, ...rest) => {
    told.push(worker)
    return heardOf(worker, ...rest)
  }
  await call('POST', `/api/v1/tasks/${id}/heartbeat`, { token })
  expect(told).toEqual(['py-1'])
  await call('POST', `/api/v1/tasks/${id}/heartbeat`, { token: 'of nobody' })
  expect(told).toEqual(['py-1'])
})

it('a failure that is permanent ends the task at once', async () => {
  const { client, call } = await openHandler()
  const { id } = await client.submit('work', 1)
  const { token } = (await call('POST', `/api/v1/tasks/${id}/claim`, { workerId: 'py-1' })).body
  const failure = { token, error: { name: 'Refused', message: 'never' }, permanent: true }
  expect((await call('POST', `/api/v1/tasks/${id}/fail`, failure)).body.status).toBe('failed')
  expect(await client.get(id)).toMatchObject({ status: 'failed', attempts: 1, lastError: { name: 'Refused' } })
})

it('what was claimed for a caller that has gone is released, without a retry', async () => {
  const { client, fetch } = await openHandler()
  const { id } = await client.submit('work', 1)
  const stop = new AbortController()
  const claimMany = client.claimMany.bind(client)
  client.claimMany = async (options) => {
    const leases = await claimMany(options)
    stop.abort()
    return leases
  }
  const wish = requestOf(
    'POST',
    '/api/v1/claim',
    { workerId: 'py-1', wait: '5s' },
    { authorization: `Bearer ${TOKEN}` },
  )
  await fetch(new Request(wish, { signal: stop.signal })).catch(() => {})
  await expect.poll(async () => (await client.get(id)).status).toBe('pending')
  const task = await client.get(id)
  expect(task).toMatchObject({ attempts: 1, retryCount: 0, lease: null })
  expect(task.history.at(-1)).toMatchObject({ move: 'release' })
})

it('a failure may name the delay before the retry', async () => {
  const { client, call } = await openHandler()
  const { id } = await client.submit('work', 1, { retryPolicy: { base: '1ms', max: '1ms' } })
  const { token } = (await call('POST', `/api/v1/tasks/${id}/claim`, { workerId: 'py-1' })).body
  const failure = { token, error: { name: 'Busy', message: 'later' }, delay: '10m' }
  expect((await call('POST', `/api/v1/tasks/${id}/fail`, failure)).status).toBe(200)
  const task = await client.get(id)
  expect(task).toMatchObject({ status: 'pending', retryCount: 1, lastError: { name: 'Busy' } })
  expect(task.availableAt - (await client.now())).toBeGreaterThan(590_000)
})

it('a worker whose lease is long is listed with its length: it is heard of only when it renews', async () => {
  const { client, call } = await openHandler()
  const { id } = await client.submit('work', 1)
  const { body } = await call('POST', '/api/v1/claim', { workerId: 'py-1', leaseTtl: '1m' })
  await expect.poll(() => client.workers()).toMatchObject([{ id: 'py-1', leaseTtl: 60_000 }])
  const { token } = body.leases[0]
  await call('POST', `/api/v1/tasks/${id}/heartbeat`, { token, leaseTtl: '10m' })
  await expect.poll(() => client.workers()).toMatchObject([{ id: 'py-1', leaseTtl: 600_000 }])
})
