/** A typing error in an address is told, on every store, before anything is opened. */
import { expect, test } from 'vitest'
import { nearest } from '../../../src/core/values/option-names.ts'
import { refuseUnknownSettings } from '../../../src/core/values/settings.ts'
import { type ConnectOptions, connect } from '../../../src/index.ts'
import { addressSettings, forDriver } from '../../../src/store/postgres/address-settings.ts'

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
  ['postgres://localhost/jobs?listn=false', "'listn': did you mean 'listen'?"],
  ['postgres://localhost/jobs?listen=no', "'no': it must be true or false"],
  ['s3://bucket/jobs?pathStyle=yes', 'pathStyle=yes, which must be true or false'],
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

test.each([
  ['nats://127.0.0.1:1/jobs', { nats: { replica: 3 } }, 'replica is not an option of nats: did you mean replicas?'],
  ['nats://127.0.0.1:1/jobs', { nats: { replicas: 9 } }, 'replicas'],
  ['nats://127.0.0.1:1/jobs', { nats: { replicas: '3' } }, 'replicas'],
  ['nats://127.0.0.1:1/jobs?monitor=host:8222', {}, "'host:8222' is not an http address"],
  ['s3://bucket/jobs?region=r', { s3: { requestTimout: '1s' } }, 'did you mean requestTimeout?'],
  ['postgres://127.0.0.1:1/jobs', { postgres: { shema: 'mine' } }, 'shema is not an option of postgres'],
])('of the store at %s, the options %o are refused', async (address, options, says) => {
  await expect(connect(address, options as ConnectOptions)).rejects.toMatchObject({
    code: 'INVALID_OPTION',
    message: expect.stringContaining(says),
  })
})

test('settings of a postgres address are read, and the rest is left to the driver', () => {
  const address = 'postgres://ann:a%26b@db/app?schema=jobs&listen=false&sslmode=verify-full&max=3&prepare=false'
  expect(addressSettings(address)).toEqual({ schema: 'jobs', listen: false, prepare: false, max: 3 })
  expect(forDriver(address)).toBe('postgres://ann:a%26b@db/app?sslmode=verify-full&')
  const theirs =
    'host port user password dbname database ssl sslmode sslcert sslkey sslrootcert options application_name encoding connect_timeout statement_timeout keepalives target_session_attrs channel_binding'
  for (const name of theirs.split(' ')) expect(addressSettings(`postgres://db/app?${name}=1`)).toEqual({})
})
