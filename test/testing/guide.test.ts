/** The handlers and tests that docs/testing.md shows. */
import { expect, test } from 'vitest'
import { connect, type Handler, RescheduleError, silentLogger } from '../../src/index.ts'
import { drain, FakeClock } from '../../src/testing/index.ts'

const begin = async () => {
  const clock = new FakeClock()
  const client = await connect('memory:', { clock, random: clock.random, logger: silentLogger })
  return { clock, client }
}

const remind: Handler = (_, ctx) => {
  if (ctx.attempt === 1) throw new RescheduleError('1h')
  return { sent: true }
}

test('a reminder that meets a rate limit is sent an hour later', async () => {
  const { clock, client } = await begin()
  const task = await client.submit('remind', { userId: '7' })

  const moves = await drain(client, { remind }, { clock })

  expect(moves.map(({ move }) => move)).toEqual(['claim', 'reschedule', 'claim', 'complete'])
  expect(clock.wall()).toBe(task.createdAt + 3_600_000)
  expect((await client.get(task.id)).output).toEqual({ sent: true })
  await client.close()
})

test('a worker stops a handler that takes too long', async () => {
  const { clock, client } = await begin()
  const slow: Handler = (_, ctx) =>
    new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)))
  client.worker().handle('slow', slow).start()
  const { id } = await client.submit('slow', {}, { timeout: '30s', maxRetries: 0 })

  await clock.advance(30_000)

  expect((await client.get(id)).lastError?.message).toBe('timed out after 30s')
  await client.close()
})
