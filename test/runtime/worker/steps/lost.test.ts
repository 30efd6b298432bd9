/** Steps, parks and signals when replies are lost, others write first, and the lease is taken. */
import { describe, expect, it } from 'vitest'
import type { Change } from '../../../../src/core/task.ts'
import { HoldfastError, Parked } from '../../../../src/index.ts'
import { type Fate, lossy } from '../../../../src/testing/lossy-store.ts'
import { gate, movesOf, refuses, shown } from '../../setup.ts'
import { stage } from './setup.ts'

const codeOf = (error: unknown): string => (error instanceof HoldfastError ? error.code : String(error))
const isMove =
  (...moves: readonly string[]) =>
  (args: readonly unknown[]): boolean =>
    (args[0] as readonly Change[]).some(({ entry }) => moves.includes(entry.move))
const isStep = isMove('step')

/** The fates of the first commits that carry such a move; then all pass. */
const first = (fates: readonly Fate[], is: (args: readonly unknown[]) => boolean) => {
  const left = [...fates]
  return (call: string, args: readonly unknown[]): Fate =>
    call === 'commit' && is(args) && left.length > 0 ? left.shift()! : 'pass'
}

describe('a step', () => {
  it.each([
    [['lose-reply']],
    [['drop-request']],
    [['lose-reply', 'lose-reply', 'drop-request', 'lose-reply']],
  ] as const)('whose write meets %j is recorded once', async (fates) => {
    const { serve, submitted, task, clock, did, lose, lines } = await stage()
    lose(first(fates, isStep))
    serve(async (_, ctx) => {
      for (const name of ['one', 'two', 'three']) did.push(String(await ctx.step(name, () => name)))
      return did.length
    })
    const id = await submitted()
    await clock.advance(4_000)
    const done = await task(id)
    expect(shown(done)).toMatchObject({ status: 'completed', attempts: 1, output: 3 })
    expect(done.steps.map(({ name, value }) => [name, value])).toEqual(
      ['one', 'two', 'three'].map((name) => [name, name]),
    )
    expect(done.revision, 'each was written once').toBe(6)
    expect(lines).toEqual([])
  })

  it("two's lost request is not taken for one's, which was written under the same lease", async () => {
    const { serve, submitted, task, clock, lose, did } = await stage()
    serve(async (_, ctx) => {
      await ctx.step('one', () => 'the first')
      lose(first(['drop-request'], isStep))
      did.push(await ctx.step('two', () => 'the second'))
    })
    const id = await submitted()
    await clock.advance(4_000)
    expect(did).toEqual(['the second'])
    expect((await task(id)).steps.map(({ name, value }) => [name, value])).toEqual([
      ['one', 'the first'],
      ['two', 'the second'],
    ])
  })

  it('is written again after others wrote first, more often than any number of tries', async () => {
    const { serve, submitted, client, task, clock, lose } = await stage()
    let others = 0
    let id = ''
    lose((call, args) => {
      // Each try finds that a signal came in between.
      if (call === 'commit' && isStep(args) && others < 60) {
        others++
        void client.signal(id, 'noise', others)
      }
      return 'pass'
    })
    serve(async (_, ctx) => {
      id = ctx.task.id
      await ctx.step('one', () => 1)
    })
    id = await submitted()
    await clock.advance(60_000)
    const done = await task(id)
    expect(shown(done)).toMatchObject({ status: 'completed', attempts: 1 })
    expect(done.steps).toHaveLength(1)
  })

  it('gives up when its lease is taken, and the other run is not disturbed', async () => {
    const { serve, submitted, another, task, clock, lose, did } = await stage()
    let isDown = true
    lose((call) => (isDown && call !== 'claim' && did.length > 0 ? 'drop-request' : 'pass'))
    serve(async (_, ctx) => {
      if (ctx.attempt === 2) return 'second'
      await ctx
        .step('one', () => void did.push('ran'))
        .catch((error: unknown) => {
          did.push(codeOf(error))
          throw error
        })
      return 'first'
    })
    const id = await submitted()
    const other = await another({ name: 'other' })
    await other.retry(id)
    isDown = false
    await clock.advance(60_000)
    expect(did).toEqual(['ran', 'STALE_LEASE'])
    expect(shown(await task(id))).toMatchObject({ status: 'completed', output: 'second', attempts: 2 })
  })

  it('one bad write does not fail those of other tasks in the same call', async () => {
    const { serve, task, clock, lose, client } = await stage()
    lose((call, args) => {
      if (
        call === 'commit' &&
        isStep(args) &&
        (args[0] as readonly Change[]).some(({ journal }) => journal?.[0]?.name === 'bad')
      )
        throw new HoldfastError('STORE_CORRUPT', 'this one cannot be stored')
      return 'pass'
    })
    serve((_, ctx) => ctx.step(ctx.task.priority === 1 ? 'bad' : 'good', () => 1))
    const results = await client.submitMany(
      [0, 1, 0, 0].map((priority) => ({ type: 'work', input: 1, priority, maxRetries: 0 })),
    )
    await clock.advance(10_000)
    const statuses = await Promise.all(results.map(async (one) => (one.ok ? (await task(one.task.id)).status : '')))
    expect(statuses).toEqual(['completed', 'failed', 'completed', 'completed'])
  })
})

describe('a park', () => {
  it.each([
    [['lose-reply']],
    [['drop-request']],
    [['lose-reply', 'lose-reply']],
    [['drop-request', 'lose-reply']],
  ] as const)('whose write meets %j is written once, and the handler gets Parked', async (fates) => {
    const { serve, submitted, task, clock, lose, lines, did } = await stage()
    lose(first(fates, isMove('park')))
    serve(async (_, ctx) => {
      await ctx.sleep('nap', '1h').catch((error: unknown) => {
        did.push(error instanceof Parked ? 'Parked' : codeOf(error))
        throw error
      })
    })
    const id = await submitted()
    await clock.advance(4_000)
    expect(did).toEqual(['Parked'])
    expect(lines).toEqual([])
    const parked = await task(id)
    expect(shown(parked)).toMatchObject({ status: 'pending', attempts: 1, parked: { step: 'nap' } })
    await clock.advance(3_600_000)
    const done = await task(id)
    expect(movesOf(done)).toEqual([
      'submit → pending',
      'claim → running',
      'park → pending',
      'claim → running',
      'complete → completed',
    ])
  })

  it('whose reply is lost is recognised although a signal has woken the task and another worker has it', async () => {
    const { serve, another, submitted, task, clock, lose, did, lines } = await stage()
    const sent = gate()
    let isCut = false
    lose((call, args) => {
      if (call === 'commit' && isMove('park')(args)) {
        isCut = true
        sent.open()
        return 'lose-reply'
      }
      return isCut ? 'drop-request' : 'pass'
    })
    serve(async (_, ctx) => {
      await ctx.waitFor('go').catch((error: unknown) => {
        did.push(error instanceof Parked ? 'Parked' : codeOf(error))
        throw error
      })
    })
    const id = await submitted()
    await sent.opened
    const other = await another({ name: 'other' })
    await other.signal(id, 'go')
    await other.claim(id, { workerId: 'other' })
    isCut = false
    await clock.advance(2_000)
    expect(did).toEqual(['Parked'])
    expect(lines.filter((line) => !line.startsWith('cannot look for work'))).toEqual([])
    expect(shown(await task(id))).toMatchObject({ status: 'running', lease: { workerId: 'other' } })
  })

  it('finds the signal that came while it was being written, and does not park', async () => {
    const { serve, submitted, another, task, lose, clock } = await stage()
    const other = await another({ name: 'other' })
    let isFirst = true
    const arrived = gate()
    lose((call, args) => {
      if (call === 'commit' && isMove('park')(args) && isFirst) {
        isFirst = false
        void other.signal((args[0] as readonly Change[])[0]!.id, 'go', 'just in time').then(() => arrived.open())
        return 'drop-request'
      }
      return 'pass'
    })
    serve((_, ctx) => ctx.waitFor('go'))
    const id = await submitted()
    await arrived.opened
    await clock.advance(2_000)
    expect(shown(await task(id))).toMatchObject({ status: 'completed', output: 'just in time', attempts: 1 })
  })
})

describe('a signal', () => {
  it.each([[['lose-reply']], [['drop-request']], [['lose-reply', 'drop-request', 'lose-reply']]] as const)(
    'whose write meets %j is kept once',
    async (fates) => {
      const { client, lose, passing } = await stage()
      const { id } = await client.submit('work', 1)
      lose(first(fates, isMove('signal')))
      await passing(client.signal(id, 'go', 7))
      expect((await client.get(id)).signals.map(({ name, value }) => [name, value])).toEqual([['go', 7]])
    },
  )

  it('whose reply is lost has succeeded although the task took it and is over', async () => {
    const { client, serve, another, task, passing } = await stage()
    const { id } = await client.submit('work', 1)
    let isCut = false
    const sender = await another({
      name: 'sender',
      through: (store) =>
        lossy(store, (call, args) => {
          if (call === 'commit' && isMove('signal')(args)) {
            isCut = true
            return 'lose-reply'
          }
          return isCut && call === 'get' ? 'drop-request' : 'pass'
        }),
    })
    const sending = sender.signal(id, 'go', 7)
    sending.catch(() => {})
    serve((_, ctx) => ctx.waitFor('go'))
    expect((await task(id)).status).toBe('completed')
    isCut = false
    expect((await passing(sending)).status).toBe('completed')
  })

  it('with an id that is known is a success, whether it waits, was taken, or the task is over', async () => {
    const { client, serve, task, clock } = await stage()
    const { id } = await client.submit('work', 1)
    const send = (value: string) => client.signal(id, 'go', value, { signalId: 'order-7' })
    await send('first')
    const again = await send('second')
    expect(again.signals.map(({ id: known, value }) => [known, value])).toEqual([['order-7', 'first']])
    const end = gate()
    serve(async (_, ctx) => {
      const value = await ctx.waitFor('go')
      await end.opened
      return value
    })
    await clock.settle()
    expect((await send('third')).signals).toEqual([])
    end.open()
    expect((await task(id)).output).toBe('first')
    expect((await send('fourth')).status).toBe('completed')
    await refuses('TASK_ENDED')(client.signal(id, 'go', 'fifth', { signalId: 'order-8' }))
  })

  it.each([
    ['completed', async () => {}],
    ['failed', async () => Promise.reject(new Error('no'))],
  ])('to a task that is %s is TASK_ENDED', async (status, end) => {
    const { client, serve, submitted, task } = await stage()
    serve(end)
    const id = await submitted({ maxRetries: 0 })
    expect((await task(id)).status).toBe(status)
    await refuses('TASK_ENDED', status)(client.signal(id, 'go'))
  })

  it('to a task that was cancelled, expired or archived is TASK_ENDED, and to an unknown one TASK_NOT_FOUND', async () => {
    const { client } = await stage()
    const [cancelled, expired, archived] = await Promise.all([1, 2, 3].map((n) => client.submit('work', n)))
    await client.cancel(cancelled!.id)
    await client.markExpired(expired!.id)
    await client.cancel(archived!.id)
    await client.archive(archived!.id)
    for (const { id } of [cancelled!, expired!, archived!]) await refuses('TASK_ENDED')(client.signal(id, 'go'))
    await refuses('TASK_NOT_FOUND')(client.signal('01900000-0000-7000-8000-000000000000', 'go'))
  })

  it('is refused when 1,000 wait untaken, and again taken in when one was taken', async () => {
    const { client, serve, task } = await stage()
    const { id } = await client.submit('work', 1)
    for (let i = 0; i < 1_000; i++) await client.signal(id, 'go', i)
    await refuses('TOO_MANY_SIGNALS')(client.signal(id, 'go', 1_000))
    const end = gate()
    serve(async (_, ctx) => {
      const value = await ctx.waitFor('go')
      await end.opened
      return value
    })
    await task(id)
    expect((await client.signal(id, 'go', 1_000)).signals).toHaveLength(1_000)
    end.open()
    expect((await task(id)).output).toBe(0)
  })

  it('is refused when those that wait are together more than four times the payload limit', async () => {
    const { client } = await stage({ maxPayload: 1_000 })
    const { id } = await client.submit('work', 1)
    for (let i = 0; i < 4; i++) await client.signal(id, 'go', 'x'.repeat(990))
    await refuses('TOO_MANY_SIGNALS')(client.signal(id, 'go', 'x'.repeat(100)))
    await refuses('PAYLOAD_TOO_LARGE')(client.signal(id, 'go', 'x'.repeat(1_000)))
  })

  it.each([
    ['no name', ['', 1]],
    ['a name that is too long', ['x'.repeat(129), 1]],
    ['a value that JSON cannot hold', ['go', 1n]],
  ] as const)('with %s is refused before anything is written', async (_, [name, value]) => {
    const { client } = await stage()
    const { id } = await client.submit('work', 1)
    await refuses('INVALID_OPTION')(client.signal(id, name, value))
    await refuses('INVALID_OPTION')(client.signal(id, 'go', 1, { signalId: '' }))
    expect((await client.get(id)).revision).toBe(1)
  })
})

describe('200 signals at once', () => {
  it('while the holder completes: the task completes in its first run, and each signal is kept or refused with TASK_ENDED', async () => {
    const { client, serve, submitted, task, passing } = await stage()
    const end = gate()
    serve(async (_, ctx) => {
      await end.opened
      await ctx.step('last', () => 'result')
      return 'done'
    })
    const id = await submitted({ maxRetries: 0 })
    const sent = Array.from({ length: 200 }, (_, i) =>
      client.signal(id, 'go', i).then(
        () => 'kept',
        (error: unknown) => codeOf(error),
      ),
    )
    end.open()
    const results = await passing(Promise.all(sent))
    const done = await task(id)
    expect(shown(done)).toMatchObject({ status: 'completed', output: 'done', attempts: 1 })
    expect(done.signals).toHaveLength(results.filter((one) => one === 'kept').length)
    expect(results.filter((one) => one !== 'kept' && one !== 'TASK_ENDED')).toEqual([])
  })

  it('to a task that waits 200 times: each is taken once, in order of arrival', async () => {
    const { client, serve, submitted, task, passing, clock } = await stage()
    serve(async (_, ctx) => {
      const got: unknown[] = []
      for (let i = 0; i < 200; i++) got.push(await ctx.waitFor(`wait ${i}`, { signal: 'go' }))
      return got
    })
    const id = await submitted()
    await passing(Promise.all(Array.from({ length: 200 }, (_, i) => client.signal(id, 'go', i))))
    await clock.advance(60_000)
    const { output, signals } = await task(id)
    expect((output as number[]).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 200 }, (_, i) => i))
    expect(signals).toEqual([])
  })
})
