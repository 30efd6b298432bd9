/** Logins: refused ones, credentials that change, inbox prefixes and domains. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { nkeys } from '@nats-io/transport-node'
import { expect, onTestFinished, test } from 'vitest'
import { type Client, type ConnectOptions, connect, silentLogger } from '../../src/index.ts'
import { until } from '../crash/processes.ts'
import { type NatsServerOptions, startNats } from '../servers/nats.ts'
import { freePort } from '../servers/processes.ts'
import { permissionsOf, usersOf } from './permissions.ts'
import { begin, onNats } from './setup.ts'

const serverWith = async (options: NatsServerOptions) => {
  const server = await startNats(options)
  onTestFinished(() => server.remove())
  return server
}

const open = async (address: string, options: ConnectOptions = {}): Promise<Client> => {
  const client = await connect(address, { create: true, logger: silentLogger, ...options })
  onTestFinished(() => client.close())
  return client
}

/** A task now and one a moment later, through a worker of this client. */
const works = async (client: Client): Promise<void> => {
  const worker = client.worker().handle('a', async (input) => input)
  worker.start()
  const tasks = [await client.submit('a', 1), await client.submit('a', 2, { delay: '20ms' })]
  const outputs = await Promise.all(tasks.map((task) => client.wait(task, { timeout: '20s' })))
  await worker.stop()
  expect(outputs).toEqual([1, 2])
  expect((await client.list({ status: 'completed' })).tasks).toHaveLength(2)
}

onNats('a login', (url) => {
  test.each([
    ['a wrong password', 'writer:nope@'],
    ['no user', ''],
  ])('with %s is refused as such, not as a server that is away', async (_, who) => {
    const server = await serverWith({ hasUsers: true })
    await expect(open(`${server.url}/jobs`.replace('//', `//${who}`))).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringMatching(/does not accept this user, password, token or credentials/),
    })
  })

  test('to an account without JetStream is refused as such', async () => {
    const users = (name: string): string => `users: [{ user: ${name}, password: ${name} }]`
    const settings = `accounts { BARE { ${users('bare')} }, FULL { jetstream: enabled, ${users('full')} } }`
    const server = await serverWith({ settings })
    const address = (who: string): string => `${server.url}/jobs`.replace('//', `//${who}:${who}@`)
    await expect(open(address('bare'))).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('JetStream is not enabled for this account'),
    })
    await open(address('full'))
  })

  test('with a credentials file that is not there is refused by its name', async () => {
    const opening = open(`${url}/jobs`, { nats: { credentials: '/no/such.creds' } })
    await expect(opening).rejects.toMatchObject({ code: 'INVALID_OPTION', details: { field: 'credentials' } })
  })

  test('that is no longer accepted is reported by every call that waits for the connection', async () => {
    const server = await serverWith({ settings: usersOf({ ann: '' }) })
    const client = await open(`${server.url}/jobs`.replace('//', '//ann:ann@'))
    await server.stop()
    writeFileSync(server.settings, `${server.settingsText.replaceAll('ann', 'bob')}`)
    await server.start()
    await until(
      'the refusal is reported',
      () =>
        client.submit('a', 1).then(
          () => false,
          (error: Error) => /connection was lost: .*Authorization/i.test(error.message),
        ),
      45_000,
      100,
    )
  })

  test('by a credentials file goes on with the new one when both the file and the server have changed', async () => {
    const [first, second] = [nkeys.createUser(), nkeys.createUser()]
    const file = join(mkdtempSync(join(tmpdir(), 'holdfast-creds-')), 'app.creds')
    onTestFinished(() => rmSync(dirname(file), { recursive: true }))
    const settings = (user: typeof first): string => `authorization { users: [{ nkey: ${user.getPublicKey()} }] }`
    writeFileSync(file, credsOf(first))
    const server = await serverWith({ settings: settings(first) })
    const client = await open(`${server.url}/jobs`, { nats: { credentials: file } })
    const { id } = await client.submit('a', 1)
    await server.stop()
    writeFileSync(file, credsOf(second))
    writeFileSync(server.settings, server.settingsText.replace(settings(first), settings(second)))
    await server.start()
    await until(
      'the client is connected again',
      () =>
        client.get(id).then(
          () => true,
          () => false,
        ),
      30_000,
      100,
    )
  })
})

/** A server that knows the key itself does not look at the JWT. */
const credsOf = (user: ReturnType<typeof nkeys.createUser>): string =>
  [
    '-----BEGIN NATS USER JWT-----',
    'not.looked.at',
    '------END NATS USER JWT------',
    '-----BEGIN USER NKEY SEED-----',
    new TextDecoder().decode(user.getSeed()),
    '------END USER NKEY SEED------',
    '',
  ].join('\n')

onNats('a bucket of more replicas than servers', (url) => {
  test('is refused as such', async () => {
    await expect(open(`${url}/jobs-three?replicas=3`)).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('no more replicas than there are servers'),
    })
  })
})

onNats('weak durability', (url) => {
  test('is reported when the store is made and when a worker starts, once each, and by no other client', async () => {
    const warnings: string[] = []
    const { address } = begin(url)
    const logger = { ...silentLogger, warn: (message: string) => void warnings.push(message) }
    await open(address, { logger })
    expect(warnings).toEqual([expect.stringContaining('durability is weak')])
    const client = await open(address, { logger })
    await client.submit('a', 1)
    await client.list()
    expect(warnings).toHaveLength(1)
    for (let n = 0; n < 2; n++) {
      const worker = client.worker().handle('a', async () => null)
      await worker.drain()
    }
    expect(warnings).toHaveLength(2)
    const findings = await client.examine()
    expect(findings.find(({ check }) => check === 'durability')?.verdict).toBe('problem')
  })
})

onNats('an inbox prefix', () => {
  test('lets a user work that hears nothing but answers of its own', async () => {
    const permissions = permissionsOf('worker').replace('_INBOX.>', '_INBOX_ann.>')
    const server = await serverWith({ settings: usersOf({ root: '', ann: permissions }) })
    await open(`${server.url}/jobs`.replace('//', '//root:root@'))
    const address = `${server.url}/jobs`.replace('//', '//ann:ann@')
    await expect(open(address, { create: false })).rejects.toMatchObject({ code: 'STORE_READ_ONLY' })
    await works(await open(`${address}?inboxPrefix=_INBOX_ann`, { create: false }))
    const findings = await (await open(address, { create: false, nats: { inboxPrefix: '_INBOX_ann' } })).examine()
    expect(findings.find(({ check }) => check === 'permissions')).toMatchObject({ verdict: 'ok' })
  })

  test('with a wildcard is refused', async () => {
    const opening = open('nats://127.0.0.1:1/jobs', { nats: { inboxPrefix: 'a.>' } })
    await expect(opening).rejects.toMatchObject({ code: 'INVALID_OPTION', details: { field: 'inboxPrefix' } })
  })
})

onNats('a JetStream domain', () => {
  test('behind a leaf node is used like one of the own server', async () => {
    const port = await freePort()
    await serverWith({ domain: 'hub', settings: `leafnodes { listen: "127.0.0.1:${port}" }` })
    const leaf = await serverWith({
      domain: 'leaf',
      settings: `leafnodes { remotes: [{ url: "nats://127.0.0.1:${port}" }] }`,
    })
    const connected = (): Promise<boolean> =>
      fetch(`${leaf.monitor}/leafz`)
        .then((answer) => answer.json() as Promise<{ leafnodes: number }>)
        .then(({ leafnodes }) => leafnodes === 1)
    await until('the leaf node is connected', connected, 20_000, 50)
    const client = await open(`${leaf.url}/jobs?domain=hub`)
    await works(client)
    expect((await client.examine()).find(({ check }) => check === 'permissions')).toMatchObject({ verdict: 'ok' })
    // The store is not on the server of this connection.
    await expect(open(`${leaf.url}/jobs`, { create: false })).rejects.toMatchObject({ code: 'STORE_NOT_FOUND' })
  })
})
