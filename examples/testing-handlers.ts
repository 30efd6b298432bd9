/** Tests handlers with node:test and a fake clock. Run it: node examples/testing-handlers.ts */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connect, type Handler, silentLogger } from 'holdfast'
import { drain, FakeClock } from 'holdfast/testing'

/** The handler under test: the service answers the third time. */
let calls = 0
const charge: Handler = () => {
  if (++calls < 3) throw new Error('card service is away')
  return { charged: true }
}

test('a charge is tried until it succeeds', async () => {
  const clock = new FakeClock()
  await using client = await connect('memory:', { clock, random: clock.random, logger: silentLogger })
  const { id } = await client.submit('charge', { order: 7 })

  await drain(client, { charge }, { clock })

  const task = await client.get(id)
  assert.deepEqual(task.output, { charged: true })
  assert.equal(task.attempts, 3)
})
