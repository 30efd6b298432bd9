/** A typing error in an address is told, on every store, before anything is opened. */
import { expect, test } from 'vitest'
import { nearest } from '../../src/core/option-names.ts'
import { refuseUnknownSettings } from '../../src/core/settings.ts'
import { connect } from '../../src/index.ts'

test.each([
  ['replica', 'replicas'],
  ['Replicas', 'replicas'],
  ['endpiont', 'endpoint'],
  ['colour', null],
])('%s is taken for %s', (name, meant) => {
  expect(nearest(name, ['replicas', 'endpoint', 'region'])).toBe(meant)
})

test('settings that are known are fine', () => {
  refuseUnknownSettings('nats://host/jobs', ['replicas', 'monitor'], ['replicas', 'monitor'])
})

test.each([
  ['nats://localhost:4222/jobs?replica=3', "'replica': did you mean 'replicas'?"],
  ['s3://bucket/jobs?endpont=http://localhost', "'endpont': did you mean 'endpoint'?"],
  ['s3://bucket/jobs?colour=red', "'colour': it takes endpoint, region"],
  ['postgres://localhost/jobs?shema=mine', "'shema': did you mean 'schema'?"],
  ['sqlite:./jobs.db?mode=ro', "'mode': it takes none"],
  ['file:./jobs.db?mode=ro', "'mode': it takes none"],
  ['memory:?name=a', "'name': it takes none"],
])('%s is refused', async (address, says) => {
  await expect(connect(address, { create: true })).rejects.toMatchObject({
    code: 'INVALID_OPTION',
    message: expect.stringContaining(says),
    details: { field: 'url' },
  })
})
