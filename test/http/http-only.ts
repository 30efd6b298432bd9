/**
 * A store that only workers over HTTP use: `holdfast serve` and three workers in Python. Everything that must go on without a worker in
 * this language is asked for, and nothing but the server touches the store: this process asks over HTTP as well.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished } from 'vitest'
import { exitOf, type Folder, linesOf } from '../cli/shell.ts'
import { TOKEN } from './setup.ts'

const EXAMPLE = dirname(fileURLToPath(new URL('../../examples/python/worker.py', import.meta.url)))
const PATIENCE = { timeout: 90_000, interval: 100 }

/** The example, with a handler that holds its task while a file is there. */
const WORKER = `
import os, sys, time
sys.path.insert(0, sys.argv[1])
import worker
def hold(payload, cancelled):
    print("holding", worker.WORKER, flush=True)
    while os.path.exists(sys.argv[2]): time.sleep(0.05)
    return worker.WORKER
print("serving as", worker.WORKER, flush=True)
worker.work({"add": lambda payload, cancelled: payload["a"] + payload["b"], "hold": hold})
`

interface PythonWorker {
  readonly id: string
  readonly child: ChildProcess
  readonly holds: Promise<unknown>
}

// biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
type Ask = (method: string, path: string, body?: object) => Promise<any>

/** `env` names the store, which exists. */
export const httpWorkersAlone = async (folder: Folder, env: Readonly<Record<string, string>>): Promise<void> => {
  const kept = await folder.run(['retention', '--completed', '2s', '--cancelled', '0'], { env })
  expect(kept).toMatchObject({ code: 0 })
  const ask = await serve(folder, env)
  const hold = folder.write('hold', '')
  const workers = await Promise.all([1, 2, 3].map(() => startWorker(ask.url, hold)))
  const ids = workers.map(({ id }) => id).sort()

  const listed = async (): Promise<string[]> =>
    (await ask.call('GET', '/workers')).workers.map(({ id }: { id: string }) => id).sort()
  await expect.poll(listed, PATIENCE).toEqual(ids)

  const [tick, mortal, orphan, refused, held] = [
    await ask.call('POST', '/schedules', { id: 'tick', type: 'add', input: { a: 1, b: 2 }, every: '1s' }),
    await ask.call('POST', '/tasks', { type: 'add', input: {}, queue: 'nobody-serves-it', ttl: '1s' }),
    await ask.call('POST', '/tasks', { type: 'unknown', input: {} }),
    await ask.call('POST', '/tasks', { type: 'add', input: {}, delay: '1h' }),
    await ask.call('POST', '/tasks', { type: 'hold', input: {} }),
  ]
  expect(tick.id).toBe('tick')
  const taskOf = (id: string): ReturnType<Ask> => ask.call('GET', `/tasks/${id}`)
  const whyOf = (id: string): ReturnType<Ask> => ask.call('GET', `/tasks/${id}/why`)

  // The one that holds the task dies.
  const victim = await Promise.race(workers.map((worker) => worker.holds.then(() => worker)))
  expect(await whyOf(held.id)).toMatchObject({ reason: 'running', sentence: expect.stringContaining(victim.id) })
  victim.child.kill('SIGKILL')
  await once(victim.child, 'exit')
  rmSync(hold)
  await expect.poll(async () => (await taskOf(held.id)).status, PATIENCE).toBe('completed')
  const again = await taskOf(held.id)
  expect(again).toMatchObject({ attempts: 2, retryCount: 1, lastError: { message: expect.stringMatching(/lease/) } })
  expect(ids.filter((id) => id !== victim.id)).toContain(again.output)

  // A ttl ends where no worker looks; why tells what nobody serves from what waits.
  await expect.poll(async () => (await taskOf(mortal.id)).status, PATIENCE).toBe('expired')
  expect(await whyOf(orphan.id)).toMatchObject({ reason: 'no-worker' })
  expect(await whyOf(refused.id)).toMatchObject({ reason: 'scheduled' })

  // Schedules fire, their tasks are run, and retention removes them: the first is gone while later ones come.
  const fired = async (): Promise<{ id: string; status: string; output: unknown }[]> =>
    (await ask.call('GET', '/tasks?type=add&status=completed&fields=all')).tasks
  await expect.poll(async () => (await fired()).length, PATIENCE).toBeGreaterThan(1)
  const first = (await fired()).at(-1)!
  expect(first.output).toBe(3)
  await ask.call('POST', `/tasks/${refused.id}/cancel`)
  const isGone = (id: string) => async () => (await ask.ask('GET', `/tasks/${id}`)).status
  await expect.poll(isGone(first.id), PATIENCE).toBe(404)
  await expect.poll(isGone(refused.id), PATIENCE).toBe(404)
  expect((await taskOf(mortal.id)).status, 'what retention does not name is kept').toBe('expired')
  await expect.poll(async () => (await fired()).length, PATIENCE).toBeGreaterThan(0)

  // The dead one is no longer listed once it was silent for long enough; those that only wait stay.
  await expect.poll(listed, PATIENCE).toEqual(ids.filter((id) => id !== victim.id))
}

interface Served {
  readonly url: string
  readonly ask: (method: string, path: string, body?: object) => Promise<Response>
  /** The answer's body. Throws when it is refused. */
  readonly call: Ask
}

const serve = async (folder: Folder, env: Readonly<Record<string, string>>): Promise<Served> => {
  const child = folder.start(['serve', '--port', '0', '--json'], { env: { ...env, HOLDFAST_TOKEN: TOKEN } })
  const exited = exitOf(child)
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await exited
  })
  const { url } = JSON.parse(await linesOf(child).until(/listening/)) as { url: string }
  const ask: Served['ask'] = (method, path, body) =>
    fetch(`${url}api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${TOKEN}`, ...(method === 'POST' && { 'content-type': 'application/json' }) },
      ...(method === 'POST' && { body: JSON.stringify(body ?? {}) }),
    })
  const call: Ask = async (method, path, body) => {
    const response = await ask(method, path, body)
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    return response.json()
  }
  return { url, ask, call }
}

const startWorker = async (url: string, hold: string): Promise<PythonWorker> => {
  const child = spawn('python3', ['-c', WORKER, EXAMPLE, hold], {
    env: { ...process.env, HOLDFAST_SERVER: url, HOLDFAST_TOKEN: TOKEN, PYTHONDONTWRITEBYTECODE: '1' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines = linesOf(child)
  const id = (await lines.until(/^serving as /)).slice('serving as '.length)
  const holds = lines.until(/^holding /)
  holds.catch(() => {})
  return { id, child, holds }
}
