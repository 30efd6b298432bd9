/** `holdfast serve` as a user types it: where it listens, access, what it says. */
import { chmodSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { describe, expect, it, onTestFinished } from 'vitest'
import { exitOf, linesOf, makeFolder, type RunOptions } from './shell.ts'

const folder = makeFolder()
const TOKEN = 'the-token-of-an-operator-0123456789'

interface Served {
  readonly url: string
  readonly token?: string
  readonly said: () => string
  readonly stop: () => Promise<number | null>
}

const serve = async (args: readonly string[] = [], options: RunOptions = {}): Promise<Served> => {
  const child = folder.start(['serve', '--port', '0', '--json', ...args], options)
  const exited = exitOf(child)
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await exited
  })
  let said = ''
  for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (text) => (said += text))
  const { url, token } = JSON.parse(await linesOf(child).until(/listening/))
  const stop = (): Promise<number | null> => {
    child.kill('SIGTERM')
    return exited
  }
  return { url, token, said: () => said, stop }
}

const bearer = (token: string): RequestInit => ({ headers: { authorization: `Bearer ${token}` } })

describe('where it listens', () => {
  it('on loopback only, with a token generated for this run, until a signal stops it', async () => {
    const { url, token, stop } = await serve()
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/)
    expect(Buffer.from(token!, 'base64url')).toHaveLength(32)
    expect((await fetch(`${url}api/v1/stats`)).status).toBe(401)
    expect((await fetch(`${url}api/v1/stats`, bearer(token!))).status).toBe(200)
    expect((await fetch(`${url}metrics`, bearer(token!))).status).toBe(200)
    const others = Object.values(networkInterfaces())
      .flat()
      .filter((one) => one?.family === 'IPv4' && !one.internal)
      .map((one) => one!.address)
    for (const address of ['127.0.0.2', ...others])
      await expect(fetch(url.replace('127.0.0.1', address)), address).rejects.toThrow()
    // A stream that is open does not keep it.
    const stream = await fetch(`${url}api/v1/changes`, bearer(token!))
    expect(stream.status).toBe(200)
    expect(await stop()).toBe(0)
  })

  it.each([
    [
      ['--host', '0.0.0.0'],
      /--host 0\.0\.0\.0 is reachable by others: give a token \(HOLDFAST_TOKEN or --token-file\)/,
    ],
    [['--host', '0.0.0.0', '--no-token'], /0\.0\.0\.0 is reachable by others/],
    [['--port', '99999'], /--port must be/],
    [['--token-file', 'nowhere'], /--token-file cannot be read/],
  ])('refuses %j', async (args, why) => {
    const { code, stderr } = await folder.run(['serve', ...args])
    expect(stderr).toMatch(why)
    expect(code).toBe(2)
  })

  it('--no-token does not open another address, even with a token in the environment', async () => {
    const { code, stderr } = await folder.run(['serve', '--host', '0.0.0.0', '--no-token'], {
      env: { HOLDFAST_TOKEN: TOKEN },
    })
    expect([code, stderr]).toEqual([2, expect.stringContaining('--no-token is for loopback only')])
  })
})

describe('access', () => {
  it('the token of the environment may do everything, that of a viewer may read; neither is printed', async () => {
    const viewer = 'the-token-of-a-viewer-0123456789'
    const env = { HOLDFAST_TOKEN: TOKEN, HOLDFAST_VIEWER_TOKEN: viewer }
    const { url, token, said, stop } = await serve(['--redact', 'pass*'], { env })
    expect(token).toBeUndefined()
    const post = (who: string): Promise<Response> =>
      fetch(`${url}api/v1/tasks`, {
        method: 'POST',
        headers: { authorization: `Bearer ${who}`, 'content-type': 'application/json' },
        body: JSON.stringify({ type: 'login', input: { password: 'canary-7f3a', user: 'ann' } }),
      })
    expect((await post(viewer)).status).toBe(403)
    expect((await post(TOKEN)).status).toBe(201)
    const list = async (who: string): Promise<string> => (await fetch(`${url}api/v1/tasks`, bearer(who))).text()
    expect(await list(TOKEN)).toContain('"password":"[redacted]","user":"ann"')
    expect(await list(viewer)).not.toContain('ann')
    expect((await fetch(`${url}api/v1/tasks/nonsense`, bearer(TOKEN))).status).toBe(400)
    expect(await stop()).toBe(0)
    for (const secret of [TOKEN, viewer, 'canary-7f3a']) expect(said()).not.toContain(secret)
  })

  it('a token file must be its owner’s alone', async () => {
    const file = folder.write('token', `${TOKEN}\n`)
    chmodSync(file, 0o644)
    const { code, stderr } = await folder.run(['serve', '--token-file', file])
    expect([code, stderr]).toEqual([2, expect.stringContaining('is readable by other users')])
    chmodSync(file, 0o600)
    const { url } = await serve(['--token-file', file, '--read-only'])
    expect(await (await fetch(`${url}api/v1/info`, bearer(TOKEN))).json()).toMatchObject({ readOnly: true })
  })
})
