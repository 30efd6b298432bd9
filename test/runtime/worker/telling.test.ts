/** What a worker says about runs that fail, without being asked. */
import { describe, expect, it } from 'vitest'
import { type Logger, PermanentError, type Task } from '../../../src/index.ts'
import { begin } from '../setup.ts'

interface Line {
  readonly level: string
  readonly message: string
  readonly facts: Record<string, unknown> | undefined
}

const recording = (): { lines: Line[]; logger: Logger } => {
  const lines: Line[] = []
  const at =
    (level: string) =>
    (message: string, facts?: Record<string, unknown>): void =>
      void lines.push({ level, message, facts })
  return { lines, logger: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') } }
}

const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), { code: 'ECONNREFUSED' })

describe('the log of a worker', () => {
  it('has a line at warn for each failed run and one at error for the death, with error and cause, without payload', async () => {
    const { lines, logger } = recording()
    const { client, clock } = await begin({ logger, random: () => 0.5 })
    client
      .worker()
      .handle('email', () => {
        throw new TypeError('fetch failed', { cause: refused })
      })
      .start()
    const { id } = await client.submit('email', { secret: 'hunter2' }, { maxRetries: 1 })
    await client.submit('email', {}, { maxRetries: 0 })
    await clock.advance(60_000)
    expect(lines.map(({ level }) => level).sort()).toEqual(['error', 'error', 'warn'])
    const [warning] = lines.filter(({ level }) => level === 'warn')
    expect(warning).toEqual({
      level: 'warn',
      message: `task ${id} failed; it runs again in 250ms`,
      facts: {
        type: 'email',
        queue: 'default',
        attempt: 1,
        error: 'TypeError: fetch failed',
        cause: 'Error: connect ECONNREFUSED 127.0.0.1:1',
      },
    })
    const deaths = lines.filter(({ level }) => level === 'error').map(({ message }) => message)
    expect(
      deaths.filter((message) => message.includes('connect(url, { defaults })')),
      'said once',
    ).toHaveLength(1)
    expect(deaths.find((message) => message.includes(id))).toMatch(/is dead after 2 runs, \S+ after it was submitted/)
    expect(JSON.stringify(lines)).not.toContain('hunter2')
  })

  it('tells of a task that dies because its worker does', async () => {
    const { lines, logger } = recording()
    const { client, clock, another } = await begin({ logger })
    const dying = await another({ vanishes: true })
    const { id } = await client.submit('email', {}, { maxRetries: 0 })
    await dying.claim(id, { workerId: 'gone' })
    client
      .worker()
      .handle('email', () => {})
      .start()
    await clock.advance(60_000)
    expect(lines).toMatchObject([{ level: 'error', facts: { error: 'LeaseExpired: lease expired', attempt: 1 } }])
  })
})

describe('onError and onTaskEnd', () => {
  it('get the very error that the handler threw, the task after it, and onError the context', async () => {
    const told: unknown[] = []
    const ends: unknown[] = []
    const { client, clock } = await begin()
    const boom = new PermanentError('boom', { cause: refused })
    client
      .worker({
        onError: (error, task: Task, ctx) => void told.push([error, task.status, ctx.attempt]),
        hooks: { onTaskEnd: (task, error) => void ends.push([task.status, error]) },
      })
      .handle('email', (input) => {
        if (input === 'fails') throw boom
      })
      .start()
    await client.submit('email', 'fails')
    await clock.advance(1_000)
    await client.submit('email', {})
    await clock.advance(1_000)
    expect(told).toEqual([[boom, 'failed', 1]])
    expect((told as [Error][])[0]![0]).toBe(boom)
    expect(ends).toEqual([
      ['failed', boom],
      ['completed', null],
    ])
  })

  it('get a TimeoutError for a run that was too long, and an Error for whatever else was thrown', async () => {
    const told: Error[] = []
    const { client, clock } = await begin()
    client
      .worker({ onError: (error) => void told.push(error) })
      .handle('slow', (_, { signal }) => new Promise((done) => signal.addEventListener('abort', done)))
      .handle('odd', () => {
        throw 'text'
      })
      .start()
    await client.submit('slow', {}, { timeout: '1s', maxRetries: 0 })
    await client.submit('odd', {}, { maxRetries: 0 })
    await clock.advance(5_000)
    expect(told.map(({ name, message }) => `${name}: ${message}`).sort()).toEqual([
      'Error: text',
      'TimeoutError: timed out after 1s',
    ])
  })
})
