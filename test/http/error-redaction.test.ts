/** An error may quote what the handler was given: who may not see payloads sees its name and code alone. */
import { expect, it } from 'vitest'
import { Redaction } from '../../src/http/wire/redaction.ts'
import { begin } from '../runtime/setup.ts'

it('causes, details, parts and frames of an error are shown with the payloads, and withheld without', async () => {
  const { client } = await begin()
  const { id } = await client.submit('work', 1, { maxRetries: 0 })
  const cause = Object.assign(new Error('secret cause'), { code: 'E1', detail: 'secret detail' })
  const error = new AggregateError([new Error('secret part')], 'secret message', { cause })
  await (await client.claim(id, { workerId: 'w' })).fail(Object.assign(error, { code: 'E0', detail: 'secret detail' }))
  const task = await client.get(id)
  const redaction = (payloads: boolean): Redaction => new Redaction({ payloads, isSecret: null, now: async () => 0 })
  expect(await redaction(true).task(task)).toMatchObject({
    lastError: { code: 'E0', cause: { message: 'secret cause', code: 'E1' }, errors: [{ message: 'secret part' }] },
  })
  const withheld = await redaction(false).task(task)
  expect(withheld['lastError']).toMatchObject({ name: 'AggregateError', code: 'E0', message: '' })
  expect(JSON.stringify(withheld)).not.toContain('secret')
})
