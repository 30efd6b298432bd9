/**
 * What must work on every JavaScript runtime, one check a process: `node smoke.mjs sqlite`. Plain JavaScript on the built package, because no test
 * runner works on all of them. A process must end by itself, with code 0 and nothing on standard error: scripts/runtimes.ts looks.
 */
import { strict as assert } from 'node:assert'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { connect, defineTask, PermanentError, silentLogger } from '../../dist/index.js'
import { openMemory } from '../../dist/store/memory/store.js'
import { openPostgres } from '../../dist/store/postgres/store.js'
import { openSqlite } from '../../dist/store/sqlite/store.js'
import { conformanceCases, walk } from '../../dist/testing/index.js'

const SELF = fileURLToPath(import.meta.url)
const [, , check, ...more] = process.argv
const folder = mkdtempSync(join(tmpdir(), 'holdfast-runtime-'))
process.once('exit', () => {
  // The child of `kill` works in the folder of its parent.
  if (check !== 'child') rmSync(folder, { recursive: true, force: true })
})
const sqlite = `sqlite:${join(folder, 'q.db')}`
const open = (address, options = {}) => connect(address, { logger: silentLogger, create: true, ...options })

const add = defineTask('add')

/** Submit, run, retry, sleep durably, die, wait, list. */
const lifeOf = async (address) => {
  const client = await open(address)
  const done = await client.submit(add, { a: 1, b: 2 })
  const flaky = await client.submit('flaky', 1, { retryPolicy: { base: '1ms' } })
  const sleeper = await client.submit('sleeper', 1)
  const dead = await client.submit('dead', 1)
  const worker = client
    .worker({ pollInterval: '50ms' })
    .handle(add, ({ a, b }) => a + b)
    .handle('flaky', (_, { attempt }) => {
      if (attempt === 1) throw new Error('once')
      return attempt
    })
    .handle('sleeper', (_, ctx) => (ctx.attempt === 1 ? ctx.reschedule(0) : 'awake'))
    .handle('dead', () => Promise.reject(new PermanentError('no')))
    .start()
  assert.equal(await client.wait(done), 3)
  assert.equal(await client.wait(flaky), 2)
  assert.equal(await client.wait(sleeper), 'awake')
  await assert.rejects(client.wait(dead), { code: 'TASK_FAILED' })
  assert.equal((await client.list({ status: 'completed', type: 'add', limit: 1 })).tasks.length, 1)
  await worker.stop()
  await client.close()
}

/** Cases of the contract, and walks beside the model: what a store must do, and not only what a first user does with it. */
const conforms = async (open, { seeds, every = 1 }) => {
  const failed = []
  const onEmptyStore = async (name, run) => {
    const store = await open()
    try {
      await run(store)
    } catch (error) {
      failed.push(`${name}: ${error.stack}`)
    } finally {
      await store.close()
    }
  }
  const cases = conformanceCases.filter((_, n) => n % every === 0)
  for (const { name, needs = [], run } of cases)
    await onEmptyStore(name, async (store) => {
      if (needs.every((need) => store.capabilities.has(need))) await run(store)
    })
  for (let seed = 1; seed <= seeds; seed++)
    await onEmptyStore(`walk ${seed}`, (store) => walk(store, { seed, steps: 300, amends: true }))
  assert.ok(cases.length > 30)
  assert.deepEqual(failed, [])
}

let opened = 0
const newFile = () => openSqlite(join(folder, `${++opened}.db`))
const newSchema = () => openPostgres(postgresIn(`conformance_${process.pid}_${++opened}`), { create: true })
const postgresIn = (schema) => {
  const url = new URL(process.env.HOLDFAST_TEST_POSTGRES_URL)
  url.searchParams.set('schema', schema)
  return url.href
}

const CHECKS = {
  async conformance() {
    await conforms(async () => openMemory(), { seeds: 5 })
    // Each case has a file and a thread of its own: some of them on each runtime, all of them on the one of the test suite.
    await conforms(newFile, { seeds: 1, every: 8 })
  },
  /** All of it, which takes minutes on each runtime: `npm run runtimes -- --full`. */
  async full() {
    await conforms(async () => openMemory(), { seeds: 200 })
    await conforms(newFile, { seeds: 20 })
    await conforms(newSchema, { seeds: 5 })
  },
  memory: () => lifeOf('memory:'),
  sqlite: () => lifeOf(sqlite),
  postgres: () => lifeOf(postgresIn(`runtime_${process.pid}`)),
  /** A handler in a thread of its own, which is ended at its timeout. */
  async thread() {
    const module = join(folder, 'handlers.mjs')
    writeFileSync(
      module,
      `import { isMainThread } from 'node:worker_threads'
       export const where = () => isMainThread
       export const hang = () => { for (;;); }`,
    )
    const client = await open(sqlite)
    const [where, hang] = await Promise.all([
      client.submit('where', 1),
      client.submit('hang', 1, { timeout: '1s', maxRetries: 0 }),
    ])
    const handler = (name) => ({ module: new URL(`file://${module}`), export: name, isolate: 'thread' })
    const worker = client.worker().handle('where', handler('where')).handle('hang', handler('hang')).start()
    assert.equal(await client.wait(where), false)
    await assert.rejects(client.wait(hang), { code: 'TASK_FAILED' })
    await worker.stop()
    await client.close()
  },
  /** A worker process is killed while it runs a task: another one runs it again. */
  async kill() {
    const client = await open(sqlite)
    const { id } = await client.submit('hold', 1, { retryPolicy: { base: '1ms' } })
    const child = spawn(process.execPath, [...process.execArgv, ...RUN, SELF, 'child', sqlite], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await new Promise((done) => child.stdout.on('data', (text) => String(text).includes('holding') && done()))
    child.kill('SIGKILL')
    const worker = client
      .worker({ leaseTtl: '1s' })
      .handle('hold', (_, { attempt }) => attempt)
      .start()
    assert.equal(await client.wait(id, { timeout: '60s' }), 2)
    await worker.stop()
    await client.close()
  },
  async child() {
    const client = await open(more[0])
    const worker = client.worker({ leaseTtl: '1s' })
    worker.handle('hold', async () => {
      process.stdout.write('holding\n')
      await new Promise((done) => setTimeout(done, 60_000))
    })
    await worker.run()
  },
  /** Nothing keeps the process alive afterwards. */
  async close() {
    const client = await open(sqlite)
    await client.submit('a', 1)
    const worker = client
      .worker()
      .handle('a', () => 1)
      .start()
    await client.close()
    await worker.stop()
    await assert.rejects(client.submit('a', 1), { code: 'STORE_CLOSED' })
  },
  async require() {
    const required = createRequire(import.meta.url)('../../dist/index.js')
    assert.equal(required.connect, connect)
  },
}

/** What Deno needs before the name of a file. */
const RUN = 'Deno' in globalThis ? ['run', '--allow-all', '--no-lock'] : []

if (!(check in CHECKS)) throw new Error(`name one of ${Object.keys(CHECKS).join(', ')}`)
await CHECKS[check]()
