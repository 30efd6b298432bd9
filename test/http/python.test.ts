/** The Python worker of examples/python, against a server of its own on SQLite. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createHttpHandler, EVERYTHING, listen, Tokens } from '../../src/http/index.ts'
import { connect, silentLogger } from '../../src/index.ts'
import { TOKEN } from './setup.ts'

const hasPython = spawnSync('python3', ['--version']).status === 0

it.skipIf(!hasPython)(
  hasPython
    ? 'a worker in Python completes, fails for good, and stops when asked'
    : 'a worker in Python (skipped: there is no python3 on this machine)',
  { timeout: 60_000 },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-python-'))
    const client = await connect(`sqlite:${join(folder, 'q.db')}`, { logger: silentLogger })
    const { authorize } = new Tokens([{ token: TOKEN, rights: EVERYTHING }])
    const server = await listen(createHttpHandler(client, { authorize }), { host: '127.0.0.1', port: 0 })
    const python = spawn('python3', [join(import.meta.dirname, '../../examples/python/worker.py')], {
      env: { ...process.env, HOLDFAST_SERVER: `http://127.0.0.1:${server.port}`, HOLDFAST_TOKEN: TOKEN },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(async () => {
      python.kill('SIGKILL')
      await server.close()
      await client.close()
      rmSync(folder, { recursive: true })
    })
    const sums = await Promise.all([1, 2, 3].map((a) => client.submit('add', { a, b: 10 })))
    expect(await Promise.all(sums.map((task) => client.wait(task)))).toEqual([11, 12, 13])
    const paid = await client.waitForEnd(await client.submit('pay', { amount: 5 }))
    expect(paid).toMatchObject({
      status: 'failed',
      attempts: 1,
      lastError: { name: 'Permanent', message: 'cannot pay 5' },
    })
    python.kill('SIGTERM')
    expect(await once(python, 'exit')).toEqual([0, null])
  },
)
