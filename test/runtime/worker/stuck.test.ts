/** Handlers that do not stop when told to: others get their slots, up to a bound, and everything names them. */
import { describe, expect, it } from 'vitest'
import { type Logger, silentLogger, type Task, type WorkerOptions } from '../../../src/index.ts'
import { begin, gate, refuses, shown } from '../setup.ts'

const never = (): Promise<never> => new Promise(() => {})

/** A worker with a handler that never settles and one that does. */
const stage = async (options: WorkerOptions = {}) => {
  const lines: string[] = []
  const told = (message: string): void => {
    lines.push(message)
  }
  const logger: Logger = { ...silentLogger, warn: told, error: told }
  const bench = await begin({ logger })
  const worker = bench.client
    .worker({ concurrency: 3, ...options })
    .handle('hung', never)
    .handle('good', () => 'done')
  const hang = (count: number) =>
    Promise.all(Array.from({ length: count }, () => bench.client.submit('hung', {}, { timeout: '10s', maxRetries: 0 })))
  return { ...bench, worker, lines, hang }
}

describe('a handler that has not settled stuckAfter after its timeout', () => {
  it('gives up its slot: two of three hang, and a good task runs', async () => {
    const { client, clock, worker, hang } = await stage()
    worker.start()
    await hang(2)
    await clock.advance(5_000)
    await hang(1)
    const good = await client.submit('good', {})
    await clock.advance(34_900)
    expect((await client.get(good.id)).status, 'no slot is free before the first are stuck').toBe('pending')
    await clock.advance(2_000)
    expect((await client.get(good.id)).status).toBe('completed')
  })

  it('is named in a line of the log, and the hook onStuck has its task', async () => {
    const stuck: Task[] = []
    const { clock, worker, lines, hang } = await stage({
      stuckAfter: '1s',
      hooks: { onStuck: (task) => stuck.push(task) },
    })
    worker.start()
    const [task] = await hang(1)
    await clock.advance(10_999)
    expect(stuck).toEqual([])
    await clock.advance(1)
    expect(stuck.map(({ id }) => id)).toEqual([task!.id])
    expect(lines.filter((line) => line.includes('stuck'))).toEqual([
      "the handler of 'hung' is stuck: it has not settled 1s after its timeout; others get its slot (1 stuck, 3 slots)",
    ])
  })

  it('is in workers with its task, until it settles', async () => {
    const { client, clock } = await begin()
    const end = gate()
    client
      .worker({ id: 'w', stuckAfter: '1s' })
      .handle('late', () => end.opened)
      .start()
    const { id } = await client.submit('late', {}, { timeout: '1s', maxRetries: 0 })
    await clock.advance(3_000)
    const [info] = await client.workers()
    expect(info).toMatchObject({
      stuck: { count: 1, tasks: [{ id, type: 'late', queue: 'default', attempt: 1, since: clock.wall() - 1_000 }] },
      claiming: true,
    })
    end.open()
    await clock.advance(1_000)
    expect((await client.workers())[0]).toMatchObject({ stuck: { count: 0, tasks: [] }, claiming: true })
    expect((await client.get(id)).revision, 'what it said at last counts for nothing').toBe(3)
  })
})

describe('a worker with as many stuck handlers as slots', () => {
  it('takes nothing, says so in the log and in workers, and goes on when one settles', async () => {
    const { client, clock, lines } = await stage()
    const ends = [gate(), gate()]
    let next = 0
    client
      .worker({ id: 'w', concurrency: 2, stuckAfter: '1s' })
      .handle('late', () => ends[next++]!.opened)
      .handle('good', () => 'done')
      .start()
    for (let i = 0; i < 2; i++) await client.submit('late', {}, { timeout: '1s', maxRetries: 0 })
    await clock.advance(3_000)
    const good = await client.submit('good', {})
    await clock.advance(3_600_000)
    expect(shown(await client.get(good.id))).toMatchObject({ status: 'pending', attempts: 0 })
    expect(lines.at(-1)).toBe(
      "2 handlers of worker w are stuck, as many as it has slots ('late'): it takes no new tasks",
    )
    expect((await client.workers())[0]).toMatchObject({ stuck: { count: 2 }, claiming: false })
    ends[0]!.open()
    await clock.advance(5_000)
    expect((await client.get(good.id)).status).toBe('completed')
    expect((await client.workers())[0]).toMatchObject({ stuck: { count: 1 }, claiming: true })
  })

  it('with exitWhenStuck finishes what still runs, gives back what waits, and run rejects with WORKER_STUCK', async () => {
    const { client, clock, passing } = await begin()
    const slow = gate<string>()
    const worker = client
      .worker({ concurrency: 2, stuckAfter: '1s', exitWhenStuck: true })
      .handle('hung', never)
      .handle('slow', () => slow.opened)
    const ran = worker.run({ signals: false })
    ran.catch(() => {})
    for (const timeout of ['1s', '2s']) await client.submit('hung', {}, { timeout, maxRetries: 0 })
    const [running, waiting] = [await client.submit('slow', {}), await client.submit('slow', {})]
    await clock.advance(4_000)
    expect((await client.get(running.id)).status, 'it has the slot of the first').toBe('running')
    expect((await client.get(waiting.id)).status).toBe('pending')
    slow.open('in time')
    await passing(refuses('WORKER_STUCK', /^2 handlers of worker/)(ran))
    expect((await client.get(running.id)).output).toBe('in time')
    expect((await client.get(waiting.id)).status).toBe('pending')
    expect(await client.workers()).toEqual([])
  })

  it('does not drain for ever', async () => {
    const { clock, worker, passing, hang, client } = await stage({ stuckAfter: '1s' })
    const tasks = await hang(5)
    const drained = worker.drain()
    drained.catch(() => {})
    await clock.advance(20_000)
    await passing(refuses('WORKER_STUCK')(drained))
    const statuses = await Promise.all(tasks.map(async ({ id }) => (await client.get(id)).status))
    expect(statuses.filter((status) => status === 'failed')).toHaveLength(3)
    expect(statuses.filter((status) => status === 'pending')).toHaveLength(2)
  })
})

it('why and doctor name what is stuck, and a worker that has stopped claiming', async () => {
  const { client, clock, worker, hang } = await stage({ id: 'w', stuckAfter: '1s', concurrency: 2 })
  worker.start()
  const [first] = await hang(1)
  await clock.advance(12_000)
  const problems = async () => (await client.examine()).filter(({ check }) => check === 'stuck')
  expect((await client.why(first!.id)).sentence).toMatch(
    /^It is dead: .*timed out after 10s.* The handler of attempt 1 is stuck in worker w: it did not stop\.$/,
  )
  expect(await problems()).toMatchObject([
    { verdict: 'warning', found: "worker w with 2 slots: 1 handler is stuck ('hung')" },
  ])
  await hang(1)
  await clock.advance(12_000)
  const good = await client.submit('good', {})
  expect(await client.why(good.id)).toMatchObject({
    reason: 'workers-stuck',
    sentence: expect.stringContaining('but the one live worker that serves it, w, has stopped claiming'),
  })
  expect(await problems()).toMatchObject([
    { verdict: 'problem', found: "worker w with 2 slots: 2 handlers are stuck ('hung'), and it takes no new tasks" },
  ])
})

describe('a cancelled handler that does not stop', () => {
  it('ends as cancelled after stuckAfter, and its lease is no longer renewed', async () => {
    const { client, clock, worker } = await stage({ concurrency: 1 })
    worker.start()
    const { id } = await client.submit('hung', {}, { timeout: null })
    const good = await client.submit('good', {})
    await clock.advance(1_000)
    await client.cancel(id)
    await clock.advance(20_000)
    expect((await client.get(id)).status).toBe('running')
    await clock.advance(15_000)
    expect(shown(await client.get(id))).toMatchObject({
      status: 'cancelled',
      lease: null,
      lastError: { name: 'HoldfastError', message: 'did not stop within 30s of its cancel' },
    })
    expect((await client.get(good.id)).status, 'the only slot is stuck').toBe('pending')
  })
})

it('a handler that does not stop when its lease is lost gives up its slot, and its end is left to the new holder', async () => {
  const { client, clock } = await begin()
  let runs = 0
  client
    .worker({ concurrency: 1, stuckAfter: '1s' })
    .handle('hung', () => (runs++ === 0 ? never() : 'second run'))
    .start()
  const another = client.worker({ concurrency: 1 }).handle('hung', () => 'second run')
  const { id } = await client.submit('hung', {}, { timeout: null })
  await clock.advance(1_000)
  await client.retry(id)
  another.start()
  await clock.advance(10_000)
  expect(shown(await client.get(id))).toMatchObject({ status: 'completed', output: 'second run', attempts: 2 })
  expect((await client.workers()).map(({ stuck }) => stuck.count).sort()).toEqual([0, 1])
})

it('three handlers that never settle in a worker of three slots do not keep a good task from another worker, nor from the next start', async () => {
  const { client, clock, hang, passing } = await stage()
  const first = client
    .worker({ concurrency: 3, exitWhenStuck: true })
    .handle('hung', never)
    .handle('good', () => 'done')
  const ran = first.run({ signals: false })
  ran.catch(() => {})
  await hang(3)
  const good = await client.submit('good', {})
  await clock.advance(60_000)
  await passing(refuses('WORKER_STUCK')(ran))
  // Its supervisor starts it again.
  client
    .worker({ concurrency: 3 })
    .handle('hung', never)
    .handle('good', () => 'done')
    .start()
  await clock.advance(5_000)
  expect((await client.get(good.id)).status).toBe('completed')
})
