/** With exactly the permissions of docs/stores/nats.md, and with each of them missing. */
import { expect, onTestFinished, test } from 'vitest'
import { type Client, connect, silentLogger } from '../../src/index.ts'
import { until } from '../crash/processes.ts'
import { type NatsServer, startNats } from '../servers/nats.ts'
import { permissionsOf, usersOf } from './permissions.ts'
import { onNats } from './setup.ts'

const literal = (text: string): string => text.replaceAll(/[$.*>]/g, '\\$&')

onNats('the permissions to paste', () => {
  const begin = async (users: Readonly<Record<string, string>>, release: 'newest' | 'oldest' = 'newest') => {
    const server: NatsServer = await startNats({ release, settings: usersOf({ root: '', ...users }) })
    onTestFinished(() => server.remove())
    const open = async (user: string): Promise<Client> => {
      const address = `${server.url}/jobs`.replace('//', `//${user}:${user}@`)
      const create = user === 'admin' || user === 'root'
      const client = await connect(address, { create, logger: silentLogger })
      onTestFinished(() => client.close())
      return client
    }
    return { server, open }
  }

  test.each(['newest', 'oldest'] as const)(
    'let an administrator make the store, a worker work, a producer submit, and an observer look, on the %s server',
    async (release) => {
      const { open } = await begin(
        {
          admin: permissionsOf('admin'),
          worker: permissionsOf('worker'),
          producer: permissionsOf('producer'),
          observer: permissionsOf('observer'),
        },
        release,
      )
      await open('admin')
      const [working, producing, observing] = [await open('worker'), await open('producer'), await open('observer')]
      const worker = working.worker().handle('a', async (input) => input)
      worker.start()
      const task = await producing.submit('a', 1, { idempotencyKey: 'one' })
      expect((await producing.submit('a', 1, { idempotencyKey: 'one' })).deduplicated).toBe(true)
      expect(await producing.wait(task, { timeout: '20s' })).toBe(1)
      const soon = await producing.submit('a', 2, { delay: '50ms' })
      expect(await producing.wait(soon, { timeout: '20s' })).toBe(2)
      const later = await producing.submit('a', 3, { delay: '1h', ttl: '2h' })
      await working.cancel(later.id)
      await working.delete(later.id)
      await working.schedules.create({ id: 'often', type: 'a', input: 4, every: '1h' })
      const fired = await working.schedules.trigger('often')
      expect(await working.wait(fired, { timeout: '20s' })).toBe(4)
      await worker.stop()
      await producing.submit('a', 5, { delay: '1h' })
      expect((await observing.get(task.id)).status).toBe('completed')
      expect((await observing.why(task.id)).sentence).toContain('completed')
      expect((await observing.list()).tasks).toHaveLength(4)
      expect((await observing.count({ status: 'scheduled' })).count).toBe(1)
      expect(await observing.stats()).toBeTruthy()
      expect(await observing.schedules.list()).toHaveLength(1)
      await expect(observing.cancel(soon.id)).rejects.toMatchObject({ code: 'CANNOT_CANCEL' })
      await expect(observing.submit('a', 1)).rejects.toMatchObject({
        code: 'STORE_READ_ONLY',
        message: expect.stringMatching(/Publish to "(\$KV|holdfast)\.jobs/),
      })
    },
  )

  test('are all that doctor asks for, and it leaves everything as it is', async () => {
    const { open } = await begin({ worker: permissionsOf('worker') })
    const root = await open('root')
    const { id } = await root.submit('a', 1)
    await root.submit('a', 2, { delay: '1h' })
    const doctor = await open('worker')
    const found = (await doctor.examine()).find(({ check }) => check === 'permissions')
    expect(found).toMatchObject({ verdict: 'ok', found: 'this user has every right that is needed' })
    expect((await root.list()).tasks).toHaveLength(2)
    const worker = root.worker().handle('a', async () => 'ran')
    worker.start()
    expect(await root.wait(id, { timeout: '20s' })).toBe('ran')
    await worker.stop()
    expect((await root.count({ status: 'scheduled' })).count).toBe(1)
  })

  const lines = permissionsOf('worker')
    .match(/"[^"]+"/g)!
    .map((line) => line.slice(1, -1))
    // The other form of an acknowledgement is for servers with domains.
    .filter((line) => !line.includes('.*.*.'))
  test('are each named, and nothing else, by doctor or where it cannot connect by that error', async () => {
    const without = (line: string): string => permissionsOf('worker').replace(new RegExp(`"${literal(line)}",?`), '')
    const { open } = await begin(Object.fromEntries(lines.map((line, n) => [`user${n}`, without(line)])))
    await open('root')
    const check = async (line: string, n: number): Promise<void> => {
      const found = await open(`user${n}`).then(
        async (client) => (await client.examine()).find(({ check }) => check === 'permissions')!.found,
        (error: Error) => error.message,
      )
      const verb = line.includes('_INBOX') || line === 'holdfast.jobs.wake' ? 'subscribe' : 'publish'
      expect(found.slice(found.indexOf('this user may not'))).toBe(`this user may not ${verb} to ${line}`)
    }
    await Promise.all(lines.map(check))
  })

  test.each([
    ['remove what is due from LATER', '$JS.API.STREAM.MSG.DELETE.HOLDFAST_jobs_LATER'],
    ['read LATER', '$JS.API.CONSUMER.CREATE.HOLDFAST_jobs_LATER'],
  ])(
    'that is missing to %s is no loss of contact: what is ready is run, and a lapsed lease is taken',
    async (_, right) => {
      const { open } = await begin({ poor: permissionsOf('worker', { without: right }) })
      const [root, dead] = [await open('root'), await open('root')]
      const { id } = await dead.submit('work', 'held')
      expect(await dead.claimNext({ workerId: 'dead', leaseTtl: '2s' })).not.toBeNull()
      await dead.close()
      let naps = 0
      const worker = (await open('poor')).worker({ leaseTtl: '2s' })
      worker
        .handle('work', () => 'ran')
        .handle('nap', (_, ctx) => {
          naps++
          return ctx.reschedule('300ms')
        })
      worker.start()
      // Some are found by the process that put them to sleep. The others must be read from LATER.
      await root.submitMany(Array.from({ length: 10 }, (_, n) => ({ type: 'nap', input: n })))
      await root.submitMany(Array.from({ length: 10 }, (_, n) => ({ type: 'nap', input: n, delay: '500ms' })))
      expect(await root.wait(id, { timeout: '20s' })).toBe('ran')
      expect(await root.wait(await root.submit('work', 'ready'), { timeout: '20s' })).toBe('ran')
      await until('they have slept again and again', () => naps > 40)
      await worker.stop()
    },
  )

  test.each([
    ['READY', (client: Client) => client.claimNext({ workerId: 'me' })],
    ['LATER', (client: Client) => client.count({ status: 'scheduled' })],
  ] as const)('that is missing to pull from %s is a refusal, not a server that is away', async (stream, call) => {
    const right = `$JS.API.CONSUMER.MSG.NEXT.HOLDFAST_jobs_${stream}`
    const { open } = await begin({ poor: permissionsOf('worker', { without: right }) })
    await (await open('root')).submit('a', 1, { delay: '1h' })
    await (await open('root')).submit('a', 1)
    await expect(call(await open('poor'))).rejects.toMatchObject({
      code: 'STORE_READ_ONLY',
      message: expect.stringContaining(right),
    })
  })
})
