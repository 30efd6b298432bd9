/** Spans for submit and run: there when the application records them, linked through the task, and no trace of them otherwise. */
import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { type Client, connect, RescheduleError, silentLogger } from '../../../src/index.ts'
import { findTracing } from '../../../src/runtime/observe/tracing.ts'
import { recordSpans } from './recording-tracer.ts'

const open = async (): Promise<Client> => {
  const client = await connect('memory:', { logger: silentLogger })
  onTestFinished(() => client.close())
  return client
}

describe('with a tracer registered', () => {
  let stop = (): void => {}
  afterEach(() => stop())

  const begin = async () => {
    const recorder = recordSpans()
    stop = recorder.stop
    return { client: await open(), spans: recorder.spans }
  }

  it('a run is linked to the submit that made its task, in whichever process', async () => {
    const { client, spans } = await begin()
    const task = await client.submit('add', { a: 1 }, { queue: 'sums', tags: { team: 'a' } })
    await client
      .worker({ queues: ['sums'] })
      .handle('add', () => trace.getTracer('app').startSpan('inside').end())
      .drain()
    const [submit, run, inside] = spans
    expect(submit).toMatchObject({
      name: 'submit add',
      kind: SpanKind.PRODUCER,
      isEnded: true,
      attributes: {
        'messaging.system': 'holdfast',
        'messaging.destination.name': 'sums',
        'messaging.message.id': task.id,
      },
    })
    const { traceId, spanId } = submit!.context
    expect(task.tags).toEqual({ team: 'a', traceparent: `00-${traceId}-${spanId}-01` })
    expect(run).toMatchObject({
      name: 'run add',
      kind: SpanKind.CONSUMER,
      isEnded: true,
      links: [{ context: { traceId, spanId, isRemote: true } }],
      attributes: { 'messaging.message.id': task.id, 'holdfast.attempt': 1 },
    })
    expect(run!.context.traceId).not.toBe(traceId)
    // What the handler records is a part of the run.
    expect(inside).toMatchObject({ name: 'inside', parent: run!.context.spanId })
  })

  it('a failure is one, a durable sleep is not', async () => {
    const { client, spans } = await begin()
    await client.submit('bad', 1, { maxRetries: 0 })
    await client.submit('sleepy', 1)
    await client
      .worker()
      .handle('bad', () => {
        throw new Error('no')
      })
      .handle('sleepy', () => {
        throw new RescheduleError('1h')
      })
      .drain()
    expect(spans.find(({ name }) => name === 'run bad')?.status).toEqual({ code: SpanStatusCode.ERROR, message: 'no' })
    expect(spans.find(({ name }) => name === 'run sleepy')).toMatchObject({ status: null, events: ['rescheduled'] })
    await expect(client.submit('a b', 1)).rejects.toThrow()
    expect(spans.at(-1)).toMatchObject({ name: 'submit a b', status: { code: SpanStatusCode.ERROR }, isEnded: true })
  })

  it('many are one span, and a task whose tags are full goes without a link', async () => {
    const { client, spans } = await begin()
    const tags = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`t${i}`, 'x']))
    const results = await client.submitMany([
      { type: 'a', input: 1 },
      { type: 'a', input: 2, tags },
    ])
    expect(spans.map(({ name }) => name)).toEqual(['submit 2 tasks'])
    expect(results.map((one) => one.ok && 'traceparent' in one.task.tags)).toEqual([true, false])
  })
})

it('without one, nothing is looked for and no task carries anything', async () => {
  delete (globalThis as Record<symbol, unknown>)[Symbol.for('opentelemetry.js.api.1')]
  expect(await findTracing()).toBeNull()
  const client = await open()
  expect((await client.submit('a', 1)).tags).toEqual({})
})
