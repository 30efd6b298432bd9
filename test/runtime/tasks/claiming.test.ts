import { describe, expect, it } from 'vitest'
import { PermanentError } from '../../../src/index.ts'
import { begin, refuses, shown } from '../setup.ts'

const UNKNOWN = '01900000-0000-7000-8000-000000000000'

describe('claiming by id', () => {
  it('[F03][F05][F07][C02][A20][A15] gives a lease: attempts +1, a new token, a fence', async () => {
    const { client, clock } = await begin()
    const { id } = await client.submit('work', { a: 1 })
    const lease = await client.claim(id, { workerId: 'me', leaseTtl: '10s' })
    expect(lease).toMatchObject({ workerId: 'me', fence: 1 })
    expect(lease.task.input).toEqual({ a: 1 })
    const task = await client.get(id)
    expect(shown(task)).toMatchObject({ status: 'running', attempts: 1, startedAt: clock.wall() })
    expect(task.lease).toEqual({
      token: lease.token,
      workerId: 'me',
      claimedAt: clock.wall(),
      expiresAt: clock.wall() + 10_000,
      ttl: 10_000,
      deadline: clock.wall() + 300_000 + 10_000,
    })
  })

  it('a renewal keeps the length with which the lease was claimed, by whatever door it comes', async () => {
    const { client, clock } = await begin()
    const { id } = await client.submit('work', {})
    const { token } = await client.claim(id, { workerId: 'me', leaseTtl: '60s' })
    await clock.advance(20_000)
    // As HTTP does it: by the token alone.
    await (await client.lease(id, { token: token! })).renew()
    expect((await client.get(id)).lease!.expiresAt).toBe(clock.wall() + 60_000)
    await (await client.lease(id, { workerId: 'me' })).renew({ leaseTtl: '10s' })
    expect((await client.get(id)).lease).toMatchObject({ expiresAt: clock.wall() + 10_000, ttl: 60_000 })
    await (await client.lease(id, { token: token! })).renew()
    expect((await client.get(id)).lease!.expiresAt).toBe(clock.wall() + 60_000)
  })

  it('the same worker again sees when its lease ends now', async () => {
    const { client, clock } = await begin()
    const { id } = await client.submit('work', {})
    await client.claim(id, { workerId: 'me', leaseTtl: '60s' })
    await clock.advance(30_000)
    const again = await client.claim(id, { workerId: 'me' })
    expect(again.task.lease).toMatchObject({ expiresAt: clock.wall() + 60_000, ttl: 60_000 })
  })

  it('a run that is renewed for ever has timed out one lease after its timeout', async () => {
    const { client, clock } = await begin()
    const { id } = await client.submit('work', {}, { timeout: '60s', maxRetries: 0 })
    const lease = await client.claim(id, { workerId: 'me', leaseTtl: '30s' })
    for (let at = 0; at < 88_000; at += 4_000) {
      await clock.advance(4_000)
      await lease.renew()
    }
    expect((await client.get(id)).lease!.expiresAt).toBe((await client.get(id)).lease!.claimedAt + 90_000)
    await clock.advance(2_000)
    await client.claimNext({ workerId: 'other' })
    const after = await client.get(id)
    expect(after).toMatchObject({ status: 'failed' })
    expect(after.lastError).toMatchObject({ name: 'TimeoutError', message: 'timed out after 1m' })
    expect((await client.history(id)).at(-1)!.move).toBe('time-out')
    await expect(lease.renew()).rejects.toMatchObject({ code: 'STALE_LEASE' })
  })

  it('a lease that is too short is refused, as a worker refuses it', async () => {
    const { client } = await begin()
    const { id } = await client.submit('work', {})
    await expect(client.claim(id, { workerId: 'me', leaseTtl: '50ms' })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
    })
    await expect(client.claimNext({ workerId: 'me', leaseTtl: '50ms' })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
    })
  })

  it('[F03][F04] the same worker again gets the same lease, and attempts stays', async () => {
    const { client, clock } = await begin()
    const { id } = await client.submit('work', {})
    const first = await client.claim(id, { workerId: 'me' })
    await clock.advance(2_000)
    const again = await client.claim(id, { workerId: 'me' })
    expect(again.token).toBe(first.token)
    expect((await client.get(id)).attempts).toBe(1)
    await again.complete(1)
    expect(
      shown(await first.complete(2)),
      'a repeat with the same lease is a success, and changes nothing',
    ).toMatchObject({ status: 'completed', output: 1 })
  })

  it('a task that was submitted this moment can be claimed where the time is known less exactly', async () => {
    const { client, clock, another } = await begin()
    const fresh = await another({
      through: (store) =>
        new Proxy(store, {
          get: (target, name) =>
            name === 'now'
              ? async () => ({ at: clock.wall(), uncertainty: 500 })
              : name === 'capabilities'
                ? new Set()
                : Reflect.get(target, name, target),
        }),
    })
    const [{ id }, later] = [await client.submit('work', {}), await client.submit('work', {}, { delay: '5s' })]
    const claimed = fresh.claim(id, { workerId: 'me' })
    const refused = refuses('TASK_NOT_AVAILABLE')(fresh.claim(later.id, { workerId: 'me' }))
    await clock.advance(1_001)
    expect((await claimed).fence).toBe(1)
    await refused
  })

  it('[Y03] every other state has its own error', async () => {
    const { client, clock } = await begin()
    const claim = (id: string, workerId = 'me') => client.claim(id, { workerId })
    const taken = await client.submit('work', {})
    await claim(taken.id, 'other')
    await refuses('TASK_ALREADY_CLAIMED', /held by other/)(claim(taken.id))
    const later = await client.submit('work', {}, { delay: '1h' })
    await refuses('TASK_NOT_AVAILABLE', /due at/)(claim(later.id))
    const expired = await client.submit('work', {}, { ttl: 0 })
    await refuses('TASK_EXPIRED')(claim(expired.id))
    expect((await client.get(expired.id)).status, 'and it is marked').toBe('expired')
    const completed = await client.submit('work', {})
    await (await claim(completed.id)).complete()
    await refuses('TASK_COMPLETED')(claim(completed.id))
    const failed = await client.submit('work', {})
    await (await claim(failed.id)).fail(new PermanentError('no'))
    await refuses('TASK_FAILED')(claim(failed.id))
    const cancelled = await client.submit('work', {})
    await client.cancel(cancelled.id)
    await refuses('TASK_CANCELLED')(claim(cancelled.id))
    await client.archive(cancelled.id)
    await refuses('TASK_ARCHIVED')(claim(cancelled.id))
    await refuses('TASK_NOT_FOUND')(claim(UNKNOWN))
    await refuses('INVALID_WORKER_ID')(claim(taken.id, ''))
    await refuses('INVALID_WORKER_ID')(claim(taken.id, '   '))
    await refuses('INVALID_TASK')(claim('no id'))
    await clock.advance(0)
  })

  it('[F01][F14][T06] only one of many workers wins', async () => {
    const { client, another } = await begin()
    const { id } = await client.submit('work', {})
    const clients = await Promise.all(Array.from({ length: 20 }, () => another()))
    const claims = await Promise.allSettled(clients.map((one, i) => one.claim(id, { workerId: `w${i}` })))
    expect(
      claims.filter(({ status }) => status === 'fulfilled'),
      '[F06][AA1][N09]',
    ).toHaveLength(1)
    for (const claim of claims) if (claim.status === 'rejected') expect(claim.reason.code).toBe('TASK_ALREADY_CLAIMED')
    expect((await client.get(id)).attempts).toBe(1)
  })

  it('the same worker again gets its lapsed lease, while no other worker has taken it', async () => {
    const { client, clock } = await begin()
    const { id } = await client.submit('work', {})
    const first = await client.claim(id, { workerId: 'me' })
    await clock.advance(60_000)
    const again = await client.claim(id, { workerId: 'me' })
    expect(again).toMatchObject({ token: first.token, fence: 1 })
    expect(await client.get(id)).toMatchObject({
      attempts: 1,
      retryCount: 0,
      lease: { expiresAt: clock.wall() + 5_000 },
    })
  })

  it('takes another worker’s lapsed lease, as any look would, and its backoff follows', async () => {
    const { client, clock } = await begin({ random: () => 0.5 })
    const { id } = await client.submit('work', {})
    const old = await client.claim(id, { workerId: 'other' })
    await clock.advance(5_000)
    await refuses('TASK_NOT_AVAILABLE')(client.claim(id, { workerId: 'me' }))
    expect(shown(await client.get(id))).toMatchObject({
      status: 'pending',
      retryCount: 1,
      lastError: { message: 'lease expired' },
    })
    await clock.advance(250)
    const lease = await client.claim(id, { workerId: 'me' })
    expect(lease.fence).toBe(2)
    await refuses('STALE_LEASE')(old.complete('late'))
    await refuses('STALE_LEASE')(old.renew())
  })

  it('claimNext gives the first that is due, of the types asked for, or null', async () => {
    const { client } = await begin()
    expect(await client.claimNext({ workerId: 'me' })).toBeNull()
    const [low, high, other] = [
      await client.submit('a', 1),
      await client.submit('a', 2, { priority: 1 }),
      await client.submit('b', 3, { priority: 2 }),
    ]
    await client.submit('a', 4, { delay: '1h', priority: 9 })
    const next = async () => (await client.claimNext({ workerId: 'me', types: ['a'] }))?.task.id
    expect([await next(), await next(), await next()]).toEqual([high.id, low.id, undefined])
    expect((await client.claimNext({ workerId: 'me' }))?.task.id).toBe(other.id)
    await refuses('INVALID_WORKER_ID')(client.claimNext({ workerId: '' }))
  })

  it('claimMany gives as many as are due, up to the limit, each under a token that tells nothing of the others', async () => {
    const { client } = await begin()
    const tasks = await Promise.all([1, 2, 3].map((input) => client.submit('a', input)))
    const leases = await client.claimMany({ workerId: 'me', limit: 2 })
    expect(leases.map(({ task }) => task.id)).toEqual(tasks.slice(0, 2).map(({ id }) => id))
    const last = await client.claimMany({ workerId: 'me', limit: 10 })
    expect(last.map(({ task }) => task.id)).toEqual([tasks[2]!.id])
    expect(last[0]!.token!.slice(0, 10)).not.toBe(leases[0]!.token!.slice(0, 10))
    expect(await client.claimMany({ workerId: 'me', limit: 1 })).toEqual([])
    await Promise.all([...leases, ...last].map((lease) => lease.complete()))
    for (const limit of [0, 1_001, 1.5]) await refuses('INVALID_OPTION')(client.claimMany({ workerId: 'me', limit }))
  })

  it('a pause by another process is seen within 5 s by who claims all the time', async () => {
    const { client, another, clock } = await begin()
    await client.submitMany([1, 2, 3].map((input) => ({ type: 'a', input })))
    expect(await client.claimNext({ workerId: 'me' })).not.toBeNull()
    await (await another()).queue('default').pause()
    await clock.advance(5_000)
    expect(await client.claimNext({ workerId: 'me' })).toBeNull()
  })
})

describe('a loop of one’s own', () => {
  it('[N04] lists what is pending, claims, skips what others have, and finishes', async () => {
    const { client, another } = await begin()
    await client.submitMany([1, 2, 3, 4].map((input) => ({ type: 'work', input })))
    const other = await another()
    const work = async (one: typeof client, workerId: string): Promise<number> => {
      let done = 0
      for (const { id } of (await one.list({ status: 'pending' })).tasks) {
        const lease = await one.claim(id, { workerId }).catch(() => null)
        if (lease === null) continue
        await lease.complete(workerId)
        done++
      }
      return done
    }
    const [a, b] = await Promise.all([work(client, 'a'), work(other, 'b')])
    expect(a + b).toBe(4)
    expect((await client.count({ status: 'completed' })).count).toBe(4)
  })
})

describe('a lease in hand', () => {
  it('[C03][G02][A21] complete stores the output; fail, reschedule and release do as a handler would', async () => {
    const { client, clock } = await begin({ random: () => 0 })
    const { id } = await client.submit('work', {})
    const claim = () => client.claim(id, { workerId: 'me' })
    expect(shown(await (await claim()).fail(new Error('no')))).toMatchObject({ status: 'pending', retryCount: 1 })
    expect(shown(await (await claim()).release())).toMatchObject({ status: 'pending', retryCount: 1 })
    expect(shown(await (await claim()).reschedule('10s'))).toMatchObject({
      status: 'pending',
      rescheduleCount: 1,
      availableAt: clock.wall() + 10_000,
    })
    await clock.advance(10_000)
    expect(shown(await (await claim()).complete({ ok: true }))).toMatchObject({
      status: 'completed',
      output: { ok: true },
      attempts: 4,
      completedAt: clock.wall(),
    })
  })

  it('renew keeps it, stores progress, and tells whether a stop was asked for', async () => {
    const { client, clock } = await begin()
    const { id } = await client.submit('work', {})
    const lease = await client.claim(id, { workerId: 'me' })
    await clock.advance(3_000)
    expect(await lease.renew({ progress: { done: 1 } })).toEqual({ cancelRequested: false })
    const task = await client.get(id)
    expect(task.lease!.expiresAt).toBe(clock.wall() + 5_000)
    expect(task.progress).toEqual({ done: 1 })
    expect(task.revision).toBe(2)
    await lease.renew({ leaseTtl: '1m' })
    expect((await client.get(id)).lease!.expiresAt).toBe(clock.wall() + 60_000)
    await client.cancel(id)
    expect(await lease.renew()).toEqual({ cancelRequested: true })
    expect((await lease.fail(new Error('stopped'))).status).toBe('cancelled')
  })

  it('a call that names a lease which is not the current one is STALE_LEASE, whatever the status', async () => {
    const { client } = await begin()
    const { id } = await client.submit('work', {})
    const stale = await client.lease(id, { token: 'made-up' })
    const all = async () => {
      for (const call of [
        () => stale.complete(1),
        () => stale.fail('x'),
        () => stale.reschedule('1s'),
        () => stale.release(),
        () => stale.renew(),
      ]) {
        await refuses('STALE_LEASE')(call())
      }
    }
    await all()
    const lease = await client.claim(id, { workerId: 'me' })
    await all()
    await lease.complete(1)
    await all()
    expect((await client.get(id)).output).toBe(1)
  })

  it('[H08] a failure is recorded with its message, where the next holder and an operator find it', async () => {
    const { client } = await begin({ random: () => 0 })
    const { id } = await client.submit('work', {}, { maxRetries: 1 })
    const fail = async (message: string) => (await client.claim(id, { workerId: 'me' })).fail(new TypeError(message))
    await fail('the first time')
    const pending = await client.get(id)
    expect(shown(pending)).toMatchObject({
      status: 'pending',
      lastError: { name: 'TypeError', message: 'the first time', attempt: 1 },
    })
    await fail('the second time')
    const dead = await client.get(id)
    expect(shown(dead)).toMatchObject({ status: 'failed', lastError: { message: 'the second time', attempt: 2 } })
    expect(dead.history.filter(({ move }) => move === 'fail').map(({ error }) => error)).toEqual([
      'the first time',
      'the second time',
    ])
  })

  it('[H08] a call that names only a worker: not claimed, wrong worker, or how it ended', async () => {
    const { client } = await begin()
    const { id } = await client.submit('work', {})
    const mine = async () => client.lease(id, { workerId: 'me' })
    await refuses('TASK_NOT_CLAIMED')((await mine()).complete(1))
    await refuses('TASK_NOT_CLAIMED')((await mine()).fail('x'))
    const lease = await client.claim(id, { workerId: 'other' })
    await refuses('WRONG_WORKER')((await mine()).complete(1))
    await refuses('WRONG_WORKER')((await mine()).renew())
    await lease.release()
    await client.claim(id, { workerId: 'me' })
    const byName = await mine()
    expect((await byName.complete('by name')).output).toBe('by name')
    await refuses('TASK_COMPLETED')((await client.lease(id, { workerId: 'me' })).fail('x'))
    const other = await client.submit('work', {})
    await (await client.claim(other.id, { workerId: 'me' })).fail(new PermanentError('no'))
    await refuses('TASK_FAILED')((await client.lease(other.id, { workerId: 'me' })).complete(1))
    await refuses('TASK_NOT_FOUND')(client.lease(UNKNOWN, { workerId: 'me' }))
  })

  it('[G02][AA1] completing twice is a success with the same lease; failing after completing is stale', async () => {
    const { client } = await begin()
    const { id } = await client.submit('work', {})
    const lease = await client.claim(id, { workerId: 'me' })
    const first = await lease.complete('once')
    const second = await lease.complete('twice')
    expect([second.output, second.revision]).toEqual(['once', first.revision])
    await refuses('STALE_LEASE')(lease.fail(new Error('x')))
    const elsewhere = await client.lease(id, { token: lease.token! })
    expect((await elsewhere.complete('thrice')).output, 'also from a token kept elsewhere').toBe('once')
  })

  it('refuses an output that cannot be kept, as a rejection, and the task stays with its holder', async () => {
    const { client } = await begin({ maxPayload: 100 })
    const { id } = await client.submit('work', {})
    const lease = await client.claim(id, { workerId: 'me' })
    await refuses('OUTPUT_INVALID', /output is a BigInt/)(lease.complete(1n))
    await refuses('PAYLOAD_TOO_LARGE')(lease.complete('x'.repeat(200)))
    await refuses('INVALID_DURATION')(lease.reschedule(5 as never))
    expect((await client.get(id)).status).toBe('running')
    await lease.complete('small')
  })

  it('a permanent error is told as in a worker, by its class or by its name', async () => {
    const { client } = await begin()
    for (const error of [new PermanentError('no'), Object.assign(new Error('no'), { name: 'PermanentError' })]) {
      const { id } = await client.submit('work', {})
      expect((await (await client.claim(id, { workerId: 'me' })).fail(error)).status).toBe('failed')
    }
  })
})
