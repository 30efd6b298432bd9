import { stat } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { AbortedError, connect, silentLogger, type TaskContext } from '../../../src/index.ts'
import { begin, gate, shown } from '../setup.ts'

describe('a run that takes longer than its timeout', () => {
  it('[F13][A14] is written at once, its signal aborts with timeout, and the slot stays taken until it settles', async () => {
    const { client, clock } = await begin({ random: () => 0.5 })
    const stuck = gate()
    const started: string[] = []
    let seen: TaskContext | undefined
    client
      .worker({ concurrency: 1 })
      .handle('stuck', async (_, ctx) => {
        started.push('stuck')
        seen = ctx
        await stuck.opened
      })
      .handle('next', () => {
        started.push('next')
      })
      .start()
    const { id } = await client.submit('stuck', {}, { timeout: '30s', maxRetries: 0 })
    await client.submit('next', {})
    await clock.advance(29_999)
    expect(seen?.signal.aborted).toBe(false)
    expect((await client.get(id)).status, 'heartbeats keep the lease however long it takes').toBe('running')
    await clock.advance(1)
    expect(seen?.signal.reason).toBeInstanceOf(AbortedError)
    expect(seen?.signal.reason.kind).toBe('timeout')
    const task = await client.get(id)
    expect(shown(task)).toMatchObject({
      status: 'failed',
      lastError: { name: 'TimeoutError', message: 'timed out after 30s' },
    })
    expect(task.history.at(-1)).toMatchObject({ move: 'time-out', to: 'failed' })
    await clock.advance(10_000)
    expect(started).toEqual(['stuck'])
    stuck.open()
    await clock.settle()
    expect(started).toEqual(['stuck', 'next'])
  })

  it('is retried like any other failure, and what the late handler returns counts for nothing', async () => {
    const { client, clock } = await begin({ random: () => 0 })
    const late = gate<string>()
    client
      .worker({ concurrency: 2 })
      .handle('slow', (_, ctx) => (ctx.attempt === 1 ? late.opened : 'in time'))
      .start()
    const { id } = await client.submit('slow', {}, { timeout: '10s' })
    await clock.advance(10_000)
    expect(shown(await client.get(id))).toMatchObject({
      status: 'completed',
      output: 'in time',
      attempts: 2,
      retryCount: 1,
    })
    const { revision } = await client.get(id)
    late.open('too late')
    await clock.advance(1_000)
    expect(shown(await client.get(id))).toMatchObject({ output: 'in time', revision })
  })

  it('each run has its own limit, however many run at once', async () => {
    const { client, clock } = await begin()
    client
      .worker()
      .handle('never', () => new Promise(() => {}))
      .start()
    const tasks = []
    for (const timeout of ['30s', '10s', '20s'])
      tasks.push(await client.submit('never', {}, { timeout, maxRetries: 0 }))
    const ended: (string | null)[] = []
    for (let second = 0; second <= 30; second += 5) {
      const now = await Promise.all(tasks.map(({ id }) => client.get(id)))
      ended.push(now.map(({ status }) => status[0]).join(''))
      await clock.advance(5_000)
    }
    expect(ended).toEqual(['rrr', 'rrr', 'rfr', 'rfr', 'rff', 'rff', 'fff'])
  })

  it('[N07] there is no limit where the timeout is null', async () => {
    const { client, clock } = await begin()
    const end = gate<string>()
    client
      .worker()
      .handle('long', () => end.opened)
      .start()
    const { id } = await client.submit('long', {}, { timeout: null })
    await clock.advance(3 * 3_600_000)
    expect(shown(await client.get(id))).toMatchObject({ status: 'running', attempts: 1 })
    end.open('at last')
    await clock.settle()
    expect(shown(await client.get(id))).toMatchObject({ status: 'completed', output: 'at last' })
  })
})

describe('a run whose timeout passes while the event loop is busy', () => {
  it('is not timed out when what it waited for has come meanwhile', async () => {
    const client = await connect('memory:', { logger: silentLogger })
    const { id } = await client.submit('work', null, { timeout: '50ms', maxRetries: 0 })
    const worker = client.worker().handle('work', async () => {
      const answer = stat('.')
      const end = performance.now() + 300
      while (performance.now() < end);
      return (await answer).isDirectory()
    })
    await worker.drain()
    expect(shown(await client.get(id))).toMatchObject({ status: 'completed', output: true })
    await client.close()
  })
})
