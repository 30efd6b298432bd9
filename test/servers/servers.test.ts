/** The test servers themselves: they start, answer, survive kill -9 with what they had, and leave no process behind. */
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { until } from '../crash/processes.ts'
import { serversOf } from './ask.ts'
import { type NatsServer, startNats, startNatsCluster } from './nats.ts'
import { ended, spawn } from './processes.ts'
import { s3Target, startS3 } from './s3.ts'
import { sendSigned } from './signed-request.ts'

const isAlive = (pid: number): boolean => existsSync(`/proc/${pid}`)

/** Where this test's servers have their folders, and nobody else's: what they leave there is theirs. */
const ownFolder = (): string => {
  const before = process.env['TMPDIR']
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-own-'))
  process.env['TMPDIR'] = folder
  onTestFinished(() => {
    if (before === undefined) delete process.env['TMPDIR']
    else process.env['TMPDIR'] = before
    rmSync(folder, { recursive: true, force: true })
  })
  return folder
}

/** Kills who started the server, and waits until the server has followed. */
const killTheStarter = async (kind: 's3' | 'nats'): Promise<void> => {
  const holder = fileURLToPath(new URL('./holder.ts', import.meta.url))
  // Killed, it cannot remove what the server had: it may have this folder for it.
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-holder-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const child = spawn(process.execPath, ['--no-warnings', holder, kind], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, TMPDIR: folder },
  })
  const [line] = (await once(child.stdout!, 'data')) as [Buffer]
  const pids = JSON.parse(line.toString()) as number[]
  expect(pids.every(isAlive)).toBe(true)
  child.kill('SIGKILL')
  await ended(child)
  await until('the servers are gone', () => !pids.some(isAlive), 10_000)
}

const send = async (url: string, method: string, key: string, body?: string, headers?: Record<string, string>) => {
  const { endpoint, bucket, ...keys } = s3Target(url)
  const request = { method, url: new URL(`/${bucket}/${key}`, endpoint), ...(headers && { headers }) }
  const answer = await sendSigned(body === undefined ? request : { ...request, body }, keys)
  return { status: answer.status, text: await answer.text() }
}

/** Skipped by name where the suite's own server could not be started. */
const where = async (kind: 's3' | 'nats', tests: () => void): Promise<void> => {
  const [server] = (await serversOf(kind))!
  if ('missing' in server!) test(kind, (context) => context.skip(`${server.name}: ${server.missing}`))
  else describe(server!.name, tests)
}

await where('s3', () => {
  test('refuses a second create, and keeps everything through kill -9 of each part', async () => {
    const folder = ownFolder()
    const server = await startS3()
    onTestFinished(() => server.remove())
    expect(await send(server.url, 'PUT', 'a', 'one', { 'if-none-match': '*' })).toMatchObject({ status: 200 })
    expect(await send(server.url, 'PUT', 'a', 'two', { 'if-none-match': '*' })).toMatchObject({ status: 412 })
    await server.killGateway()
    await expect(send(server.url, 'GET', 'a')).rejects.toThrow()
    await server.startGateway()
    expect(await send(server.url, 'GET', 'a')).toEqual({ status: 200, text: 'one' })
    await server.killDisk()
    const waiting = send(server.url, 'PUT', 'b', 'while the disk is away')
    await server.startDisk()
    expect(await waiting).toMatchObject({ status: 200 })
    await server.crash()
    await server.restart()
    expect(await send(server.url, 'GET', 'b')).toEqual({ status: 200, text: 'while the disk is away' })
    const pids = server.pids()
    expect(pids.filter(isAlive)).toHaveLength(3)
    await server.remove()
    expect(pids.filter(isAlive)).toEqual([])
    expect(readdirSync(folder)).toEqual([])
  })

  test('dies with a process that is killed', () => killTheStarter('s3'))
})

await where('nats', () => {
  test('says that JetStream is on, also after kill -9, and leaves nothing', async () => {
    const folder = ownFolder()
    const server = await startNats({ syncAlways: true })
    onTestFinished(() => server.remove())
    const answer = async (): Promise<unknown> => (await fetch(`${server.monitor}/varz`)).json()
    expect(await answer()).toMatchObject({ jetstream: { config: { sync_always: true } } })
    const first = server.pid
    await server.kill()
    expect(isAlive(first)).toBe(false)
    await server.start()
    expect(await answer()).toMatchObject({ version: server.version })
    await server.remove()
    expect(isAlive(server.pid)).toBe(false)
    expect(readdirSync(folder)).toEqual([])
  })

  test('three of them are one cluster with a leader', async () => {
    const cluster = await startNatsCluster()
    onTestFinished(() => cluster.remove())
    const stateOf = async ({ monitor }: NatsServer): Promise<string> => {
      const { meta_cluster } = (await (await fetch(`${monitor}/jsz`)).json()) as JetStreamState
      return `${meta_cluster.cluster_size} led by ${meta_cluster.leader}`
    }
    // They have chosen a leader; that all three have heard of each other may take a moment longer.
    await expect
      .poll(async () => new Set(await Promise.all(cluster.servers.map(stateOf))), { timeout: 20_000 })
      .toEqual(new Set([expect.stringMatching(/^3 led by n\d+$/)]))
  })

  test('dies with a process that is killed', () => killTheStarter('nats'))
})

interface JetStreamState {
  readonly meta_cluster: { readonly leader: string; readonly cluster_size: number }
}
