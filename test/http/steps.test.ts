/** Durable steps of a worker over HTTP: what each call answers, and what a repeat of it does. */
import { expect, it } from 'vitest'
import type { Client } from '../../src/index.ts'
import { type Answer, API, openHandler } from './setup.ts'

interface Run {
  readonly token: string
  ask(path: string, body: object): Promise<Answer>
}

const begin = async () => {
  const { client, call } = await openHandler()
  const { id } = await client.submit('order', 1)
  const claim = async (): Promise<Run> => {
    const { body, status } = await call('POST', `${API}/tasks/${id}/claim`, { workerId: crypto.randomUUID() })
    expect(status).toBe(200)
    const { token } = body
    return { token, ask: (path, more) => call('POST', `${API}/tasks/${id}/${path}`, { token, ...more }) }
  }
  return { client, id, claim }
}

const journalLength = async (client: Client, id: string): Promise<number> =>
  (await client.get(id)).timeline().filter((one) => 'kind' in one).length

it('a step is run with a key, recorded once, and answered from the record in later runs', async () => {
  const { client, id, claim } = await begin()
  const first = await claim()
  expect((await first.ask('step', { name: 'charge' })).body).toEqual({ state: 'run', key: `${id}:charge` })
  const recorded = { state: 'recorded', value: { receipt: 7 } }
  for (const value of [{ receipt: 7 }, { receipt: 7 }, 'another'])
    expect((await first.ask('step', { name: 'charge', value })).body).toEqual(recorded)
  expect((await first.ask('step', { name: 'none', value: null })).body).toEqual({ state: 'recorded', value: null })
  expect((await first.ask('step', { name: 'file', value: 'AP8=', encoding: 'base64' })).body).toEqual({
    state: 'recorded',
    value: 'AP8=',
    encoding: 'base64',
  })
  await first.ask('release', {})
  const second = await claim()
  expect((await second.ask('step', { name: 'charge' })).body).toEqual(recorded)
  expect((await second.ask('steps', {})).body.steps).toMatchObject([
    { name: 'charge', kind: 'step', value: { receipt: 7 } },
    { name: 'none', value: null },
    { name: 'file', value: 'AP8=', encoding: 'base64' },
  ])
  expect(await journalLength(client, id)).toBe(3)
  expect((await first.ask('step', { name: 'late', value: 1 })).body.error.code).toBe('STALE_LEASE')
  expect((await second.ask('complete', { output: 1 })).body.status).toBe('completed')
})

it('a sleep parks the task, a repeat says so again, and the next run goes on', async () => {
  const { client, id, claim } = await begin()
  const first = await claim()
  const asleep = await first.ask('sleep', { name: 'nap', duration: '1h' })
  expect(asleep.body).toEqual({ state: 'parked', until: expect.stringMatching(/Z$/) })
  expect(await first.ask('sleep', { name: 'nap', duration: '1h' })).toEqual({ ...asleep, headers: expect.anything() })
  expect((await client.get(id)).parked).toMatchObject({ step: 'nap', kind: 'sleep' })
  await client.runNow(id)
  const second = await claim()
  expect((await first.ask('sleep', { name: 'nap', duration: '1h' })).body).toEqual(asleep.body)
  for (let i = 0; i < 2; i++)
    expect((await second.ask('sleep', { name: 'nap', duration: '1h' })).body).toEqual({ state: 'over' })
})

it('a signal is taken once, by the step that asked first', async () => {
  const { client, id, claim } = await begin()
  const first = await claim()
  expect((await first.ask('wait-for', { name: 'approval', signal: 'approved' })).body).toEqual({
    state: 'parked',
    until: null,
  })
  await client.signal(id, 'approved', { by: 'ann' }, { signalId: 's-1' })
  const second = await claim()
  for (let i = 0; i < 2; i++)
    expect((await second.ask('wait-for', { name: 'approval', signal: 'approved' })).body).toMatchObject({
      state: 'taken',
      value: { by: 'ann' },
      signal: { id: 's-1', name: 'approved' },
    })
  expect((await second.ask('wait-for', { name: 'again', signal: 'approved', timeout: 0 })).body).toEqual({
    state: 'timed-out',
  })
})

it('a name that is recorded as another kind of step is refused, before anything is written', async () => {
  const { client, id, claim } = await begin()
  const { ask } = await claim()
  await ask('step', { name: 'charge', value: 1 })
  const refused = [
    await ask('sleep', { name: 'charge', duration: '1h' }),
    await ask('wait-for', { name: 'charge' }),
    await ask('step', { name: '', value: 1 }),
    await ask('sleep', { name: 'nap', duration: 'soon' }),
  ]
  expect(refused.map(({ body }) => body.error.code)).toEqual([
    'STEP_INVALID',
    'STEP_INVALID',
    'INVALID_OPTION',
    'INVALID_DURATION',
  ])
  expect(await journalLength(client, id)).toBe(1)
})

it('with a cancel requested, a sleep ends the task and says so', async () => {
  const { client, id, claim } = await begin()
  const { ask } = await claim()
  await client.cancel(id)
  for (let i = 0; i < 2; i++)
    expect((await ask('sleep', { name: 'nap', duration: '1h' })).body).toEqual({ state: 'cancelled' })
  expect((await client.get(id)).status).toBe('cancelled')
})
