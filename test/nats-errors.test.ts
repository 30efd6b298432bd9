/** What NATS says, as Holdfast's codes; without a server. */
import { expect, test } from 'vitest'
import { isContactLost } from '../src/core/errors.ts'
import { asHoldfastError } from '../src/store/nats/connection/errors.ts'

const answered = (code: number, status: number, description: string): Error =>
  Object.assign(new Error(description), { code, status })

test('a refusal by the JetStream API is an answer, not a loss of contact', () => {
  for (const refused of [
    answered(10_057, 500, 'no message found'),
    answered(10_043, 400, 'sequence not found'),
    answered(10_100, 400, 'filtered consumer not unique on workqueue stream'),
  ])
    expect(isContactLost(asHoldfastError(refused, 'nats://host/jobs')), refused.message).toBe(false)
})

test('a server that cannot answer yet is as good as none: repeating the call is worth while', () => {
  for (const notYet of [
    answered(10_008, 503, 'JetStream system temporarily unavailable'),
    answered(10_059, 404, 'stream not found'),
    answered(10_049, 500, 'error creating store for stream'),
    answered(10_119, 500, 'consumer is offline'),
    new Error('no answer to $JS.API.INFO within 3000 ms'),
  ])
    expect(isContactLost(asHoldfastError(notYet, 'nats://host/jobs')), notYet.message).toBe(true)
})
