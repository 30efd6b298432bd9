/** What PostgreSQL and its driver say before there is a connection, without a server. */
import { describe, expect, it } from 'vitest'
import { HoldfastError } from '../../src/index.ts'
import { asHoldfastError } from '../../src/store/postgres/errors.ts'
import { begin, refuses } from './setup.ts'

const thrown = (message: string, code?: string): Error =>
  Object.assign(new Error(message), code === undefined ? null : { code })

describe('an error of PostgreSQL', () => {
  it.each<[error: Error, code: string, reason: string | undefined]>([
    [thrown('password authentication failed for user "ann"', '28P01'), 'STORE_UNAVAILABLE', 'wrong-password'],
    [
      thrown('SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string'),
      'STORE_UNAVAILABLE',
      'wrong-password',
    ],
    [thrown('role "bob" does not exist', '28000'), 'STORE_UNAVAILABLE', 'not-allowed'],
    [
      thrown('no pg_hba.conf entry for host "10.0.0.1", user "ann", no encryption', '28000'),
      'STORE_UNAVAILABLE',
      'tls',
    ],
    [thrown('getaddrinfo ENOTFOUND db.invalid', 'ENOTFOUND'), 'STORE_UNAVAILABLE', 'unknown-host'],
    [thrown('connect ECONNREFUSED 127.0.0.1:1', 'ECONNREFUSED'), 'STORE_UNAVAILABLE', 'refused'],
    [thrown('The server does not support SSL connections'), 'STORE_UNAVAILABLE', 'tls'],
    [thrown('self-signed certificate', 'DEPTH_ZERO_SELF_SIGNED_CERT'), 'STORE_UNAVAILABLE', 'tls'],
    [thrown('database "x" does not exist', '3D000'), 'STORE_NOT_FOUND', 'no-database'],
    [thrown('the database system is starting up', '57P03'), 'STORE_UNAVAILABLE', 'not-ready'],
    [thrown('sorry, too many clients already', '53300'), 'STORE_UNAVAILABLE', 'too-many-connections'],
    [thrown('Connection terminated unexpectedly'), 'STORE_UNAVAILABLE', undefined],
  ])('%s has a reason, an address, and advice of its own', (error, code, reason) => {
    const told = asHoldfastError(error, 'postgres://db:5432/app')
    expect(told).toMatchObject({ code, message: expect.stringContaining('postgres://db:5432/app: ') })
    expect(told.details['reason']).toBe(reason)
    expect(told.details['sqlState'] ?? '00000').toMatch(/^[0-9A-Z]{5}$/)
    if (reason !== undefined) expect(told.toJSON().fix).toBe(told.details['advice'])
  })

  it('that no address can be read says how to write its special characters', () => {
    const told = asHoldfastError(thrown('Invalid URL', 'ERR_INVALID_URL'), 'postgres:')
    expect(told).toMatchObject({ code: 'INVALID_OPTION', message: expect.stringContaining('# is %23') })
  })

  it('of a host with several addresses says what each of them said', () => {
    const all = Object.assign(
      new AggregateError([thrown('connect ECONNREFUSED ::1:1'), thrown('connect ECONNREFUSED 127.0.0.1:1')]),
      { code: 'ECONNREFUSED' },
    )
    expect(asHoldfastError(all, 'postgres://localhost:1/x').message).toBe(
      'postgres://localhost:1/x: connect ECONNREFUSED ::1:1; connect ECONNREFUSED 127.0.0.1:1',
    )
  })
})

describe('a submit that reached nobody', () => {
  const failing = (reason?: string) =>
    begin({
      through: (store) =>
        new Proxy(store, {
          get: (target, name) =>
            name === 'insert'
              ? () =>
                  Promise.reject(
                    new HoldfastError('STORE_UNAVAILABLE', 'no contact', reason === undefined ? {} : { reason }),
                  )
              : (Reflect.get(target, name)?.bind?.(target) ?? Reflect.get(target, name)),
        }),
    })

  it('says that nothing was stored when no connection was made, and is in doubt otherwise', async () => {
    const refused = await failing('refused')
    await refuses('STORE_UNAVAILABLE', /Nothing was stored$/)(refused.passing(refused.client.submit('work', 1), 1_000))
    const lost = await failing()
    await refuses(
      'STORE_UNAVAILABLE',
      /may or may not have been stored/,
    )(lost.passing(lost.client.submit('work', 1), 1_000))
  })
})
