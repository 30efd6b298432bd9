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
      /--host 0\.0\.0\.0 is reachable by others: give a token \(HOLDFAST_TOKEN, --token-file or --tokens\)/,
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
    // As files of secrets end.
    const env = { HOLDFAST_TOKEN: `${TOKEN}\n`, HOLDFAST_VIEWER_TOKEN: `${viewer}\n` }
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
    expect(await list(TOKEN)).toContain('"payloads":"omitted"')
    const { tasks } = JSON.parse(await list(TOKEN)) as { tasks: { id: string }[] }
    const task = await (await fetch(`${url}api/v1/tasks/${tasks[0]!.id}`, bearer(TOKEN))).text()
    expect(task).toContain('"password":"[redacted]","user":"ann"')
    expect(await list(viewer)).not.toContain('ann')
    expect((await fetch(`${url}api/v1/tasks/nonsense`, bearer(TOKEN))).status).toBe(400)
    expect(await stop()).toBe(0)
    for (const secret of [TOKEN, viewer, 'canary-7f3a']) expect(said()).not.toContain(secret)
  })

  it('a file has named tokens with roles, and histories say who did it', async () => {
    const [ann, py] = ['the-token-of-ann-0123456789', 'the-token-of-py-0123456789']
    const file = folder.write(
      'tokens.json',
      JSON.stringify([
        { name: 'ann', token: ann, role: 'operator' },
        { name: 'py', token: py, role: 'worker', queues: ['mail'] },
      ]),
    )
    chmodSync(file, 0o600)
    const { url, token, said, stop } = await serve(['--tokens', file])
    expect(token).toBeUndefined()
    const post = async (who: string, path: string, body: unknown): Promise<unknown[]> => {
      const response = await fetch(`${url}api/v1${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${who}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      return [response.status, await response.json()]
    }
    const submitted = await post(ann, '/tasks', { type: 'a', input: 1, queue: 'mail' })
    expect(submitted).toMatchObject([201, { history: [{ move: 'submit', by: 'ann' }] }])
    expect(await post(py, '/claim', { workerId: 'w' })).toMatchObject([200, { leases: [{ task: { queue: 'mail' } }] }])
    expect(await post(py, '/tasks', { type: 'a', input: 1, queue: 'mail' })).toMatchObject([403, {}])
    expect(await post(TOKEN, '/claim', { workerId: 'w' })).toMatchObject([401, {}])
    expect(await stop()).toBe(0)
    for (const secret of [ann, py]) expect(said()).not.toContain(secret)
  })

  it.each([
    ['{', /is not JSON/],
    ['{}', /must contain a list/],
    ['[{ "token": "the-token-of-ann-0123456789", "role": "viewer" }]', /token 1 needs a name/],
    ['[{ "name": "a", "token": "the-token-of-ann-0123456789" }]', /token 1 needs a role/],
    ['[{ "name": "a", "token": "the-token-of-ann-0123456789", "role": "king" }]', /role must be one of/],
    ['[{ "name": "a", "token": "the-token-of-ann-0123456789", "rights": ["fly"] }]', /rights must be some of/],
    ['[{ "name": "a", "token": "short", "role": "viewer" }]', /24 to 512/],
    ['[{ "name": "a", "token": "the-token-of-ann-0123456789", "role": "viewer", "queues": ["q"] }]', /queues limit/],
    [
      '[{ "name": "a", "token": "the-token-of-ann-0123456789", "role": "viewer", "colour": 1 }]',
      /unknown field 'colour'/,
    ],
  ])('a file of tokens that is wrong is refused: %s', async (text, why) => {
    const file = folder.write('tokens.json', text)
    chmodSync(file, 0o600)
    const { code, stderr } = await folder.run(['serve', '--tokens', file])
    expect([code, stderr]).toEqual([2, expect.stringMatching(why)])
    expect(stderr).not.toContain('the-token-of-ann')
  })

  it('a link with a wrong token shows a browser a page, and a program JSON', async () => {
    const { url } = await serve()
    const open = (accept: string): Promise<Response> =>
      fetch(`${url}login?token=stale`, { headers: { accept }, redirect: 'manual' })
    const page = await open('text/html,application/xhtml+xml')
    expect([page.status, page.headers.get('location')]).toEqual([303, '/#/login'])
    expect(page.headers.get('set-cookie')).toBeNull()
    expect((await open('*/*')).status).toBe(401)
  })

  it('a claim that waits is answered at once at SIGTERM', async () => {
    const { url, token, stop } = await serve()
    const claimed = fetch(`${url}api/v1/claim`, {
      method: 'POST',
      headers: { ...(bearer(token!).headers as object), 'content-type': 'application/json' },
      body: JSON.stringify({ workerId: 'w', wait: '30s', types: ['none-has-this'] }),
    })
    const workers = async (): Promise<unknown[]> => {
      const { workers: some } = (await (await fetch(`${url}api/v1/workers`, bearer(token!))).json()) as {
        workers: unknown[]
      }
      return some
    }
    await expect.poll(workers, { timeout: 20_000 }).toHaveLength(1)
    const began = performance.now()
    const stopped = stop()
    expect(await (await claimed).json()).toEqual({ leases: [] })
    expect(await stopped).toBe(0)
    // After five seconds it would have been cut off.
    expect(performance.now() - began).toBeLessThan(4_500)
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

/** Makes garbage in the process that loads it, and says to what V8's space for young objects has grown. */
const GARBAGE = `
  import { getHeapSpaceStatistics } from 'node:v8'
  const kept = []
  let rounds = 0
  const timer = setInterval(() => {
    kept.push(Array.from({ length: 20_000 }, (_, n) => ({ n })))
    if (kept.length > 5) kept.shift()
    if (++rounds < 300) return
    clearInterval(timer)
    const { space_size } = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')
    console.error('young ' + space_size)
  }, 1)`

it("does not let V8's space for young objects grow to what it takes by itself", async () => {
  const preload = `--import data:text/javascript,${encodeURIComponent(GARBAGE)}`
  const youngMegabytes = async (options: string): Promise<number> => {
    const { said } = await serve([], { env: { NODE_OPTIONS: `${preload} ${options}` } })
    await expect.poll(said, { timeout: 50_000 }).toMatch(/young \d+/)
    return Number(/young (\d+)/.exec(said())![1]) / 2 ** 20
  }
  expect(await youngMegabytes('')).toBeLessThanOrEqual(16)
  // Whoever sets it has it: the test above can fail.
  expect(await youngMegabytes('--max-semi-space-size=64')).toBeGreaterThan(16)
})
