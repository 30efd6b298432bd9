/** ctx.sleep and ctx.waitFor: when a task is parked, when it runs again, and what its handler then gets. */
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Change } from '../../../../src/core/task.ts'
import {
  HoldfastError,
  Parked,
  SignalInvalid,
  SignalTimeout,
  type Task,
  type TaskContext,
} from '../../../../src/index.ts'
import { gate, movesOf, refuses, shown } from '../../setup.ts'
import { type Stage, stage } from './setup.ts'

const codeOf = (error: unknown): string => (error instanceof HoldfastError ? error.code : String(error))
const HOUR = 3_600_000
const NEVER = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

describe('a sleep', () => {
  it('parks the task: no counter moves, the slot is free, and the handler starts from the top when it is time', async () => {
    const { serve, submitted, did, task, clock } = await stage()
    serve(async (_, ctx) => {
      did.push(`run ${ctx.attempt}`)
      await ctx.sleep('nap', '1h')
      did.push(`awake ${ctx.attempt}`)
    })
    const id = await submitted()
    const asleep = await task(id)
    const until = clock.wall() + HOUR
    expect(shown(asleep)).toMatchObject({
      status: 'pending',
      lease: null,
      retryCount: 0,
      rescheduleCount: 0,
      lastError: null,
      availableAt: until,
      parked: { step: 'nap', kind: 'sleep', until },
    })
    await clock.advance(HOUR - 1)
    expect(did).toEqual(['run 1'])
    await clock.advance(1)
    expect(did).toEqual(['run 1', 'run 2', 'awake 2'])
    const done = await task(id)
    expect(shown(done)).toMatchObject({ status: 'completed', attempts: 2, retryCount: 0, parked: null })
    expect(movesOf(done)).toEqual([
      'submit → pending',
      'claim → running',
      'park → pending',
      'claim → running',
      'complete → completed',
    ])
    expect(done.steps).toMatchObject([{ name: 'nap', kind: 'sleep', status: 'done', until }])
  })

  it('frees the only slot of a worker for other tasks', async () => {
    const { client, clock } = await stage()
    client
      .worker({ concurrency: 1 })
      .handle('sleeper', (_, ctx) => ctx.sleep('nap', '1h'))
      .handle('quick', () => 'done')
      .start()
    await client.submit('sleeper', 1)
    const { id } = await client.submit('quick', 1)
    await clock.advance(1_000)
    expect((await client.get(id)).status).toBe('completed')
  })

  it('rejects with Parked, and the signal aborts with parked', async () => {
    const { serve, submitted, lines, clock } = await stage()
    const seen: unknown[] = []
    serve(async (_, ctx) => {
      ctx.signal.addEventListener('abort', () => seen.push(ctx.signal.reason.kind))
      try {
        await ctx.sleep('nap', '1h')
      } catch (error) {
        seen.push(error)
        throw error
      }
    })
    await submitted()
    await clock.settle()
    expect(seen).toEqual(['parked', expect.any(Parked)])
    expect((seen[1] as Parked).step).toBe('nap')
    expect(lines, 'this is how it should be').toEqual([])
  })

  it('has the wake instant of its first park: later runs do not move it', async () => {
    const { serve, submitted, client, task, clock } = await stage()
    serve(async (_, ctx) => {
      if (ctx.attempt === 2) throw new Error('an hour too late')
      await ctx.sleep('nap', '2h')
    })
    const id = await submitted()
    const until = clock.wall() + 2 * HOUR
    await clock.advance(HOUR)
    await client.cancel(id)
    await client.retry(id)
    await clock.advance(10_000)
    expect(shown(await task(id))).toMatchObject({ attempts: 3, availableAt: until, parked: { until } })
    await clock.advanceTo(until)
    expect(shown(await task(id))).toMatchObject({ status: 'completed', attempts: 4 })
  })

  it('of 0 is over at once, and nothing is written', async () => {
    const { serve, submitted, task } = await stage()
    serve((_, ctx) => ctx.sleep('nap', 0))
    const done = await task(await submitted())
    expect(shown(done)).toMatchObject({ status: 'completed', attempts: 1, revision: 3 })
  })

  it('that is over by the time it is asked for again does not park', async () => {
    const { serve, submitted, client, task, clock } = await stage()
    serve((_, ctx) => ctx.sleep('nap', '1h'))
    const id = await submitted()
    await client.cancel(id)
    await clock.advance(2 * HOUR)
    await client.retry(id)
    await clock.advance(1_000)
    expect(shown(await task(id))).toMatchObject({ status: 'completed', attempts: 2 })
  })

  it.each([5 as unknown as string, '-1s', 'soon'])('of %j is refused', async (duration) => {
    const { serve, submitted, did } = await stage()
    serve((_, ctx) => ctx.sleep('nap', duration).catch((error: unknown) => void did.push(codeOf(error))))
    await submitted()
    expect(did).toHaveLength(1)
    expect(did[0]).toMatch(/^INVALID/)
  })

  it('a timeout does not run while the task sleeps', async () => {
    const { serve, submitted, task, clock } = await stage()
    serve((_, ctx) => ctx.sleep('nap', '1h'))
    const id = await submitted({ timeout: '1s' })
    await clock.advance(HOUR)
    expect(shown(await task(id))).toMatchObject({ status: 'completed', retryCount: 0 })
  })

  it('ends when runNow says so, and stays over in later runs', async () => {
    const { serve, submitted, client, task, clock } = await stage()
    serve(async (_, ctx) => {
      await ctx.sleep('nap', '1h')
      if (ctx.attempt === 2) throw new Error('again')
    })
    const id = await submitted()
    const woken = await client.runNow(id)
    expect(shown(woken)).toMatchObject({ status: 'pending', parked: null })
    await clock.advance(1_000)
    const done = await task(id)
    expect(shown(done)).toMatchObject({ status: 'completed', attempts: 3 })
    expect(done.steps).toMatchObject([{ name: 'nap', status: 'done' }])
  })
})

describe('a wait for a signal', () => {
  it('parks the task without an end, and the signal makes it due', async () => {
    const { serve, submitted, client, task, clock, did } = await stage()
    serve(async (_, ctx) => {
      did.push(`run ${ctx.attempt}`)
      return ctx.waitFor('approved')
    })
    const id = await submitted()
    expect(shown(await task(id))).toMatchObject({
      status: 'pending',
      availableAt: NEVER,
      parked: { step: 'approved', kind: 'signal', signal: 'approved', until: null },
    })
    await clock.advance(HOUR)
    const sent = await client.signal(id, 'approved', { by: 'ann' })
    expect(shown(sent)).toMatchObject({ status: 'pending', parked: null })
    const done = await task(id)
    expect(did).toEqual(['run 1', 'run 2'])
    expect(shown(done)).toMatchObject({ status: 'completed', output: { by: 'ann' }, attempts: 2, retryCount: 0 })
    expect(done.steps).toMatchObject([{ name: 'approved', kind: 'signal', status: 'done', value: { by: 'ann' } }])
    expect(done.signals).toEqual([])
  })

  it('does not park if the signal is there already', async () => {
    const { serve, client, task } = await stage()
    const { id } = await client.submit('work', 1)
    await client.signal(id, 'approved', 7)
    serve((_, ctx) => ctx.waitFor('approved'))
    expect(shown(await task(id))).toMatchObject({ status: 'completed', output: 7, attempts: 1 })
  })

  it('does not park if the signal comes while the handler runs', async () => {
    const { serve, submitted, client, task } = await stage()
    const end = gate()
    serve(async (_, ctx) => {
      await end.opened
      return ctx.waitFor('approved')
    })
    const id = await submitted()
    await client.signal(id, 'approved', 7)
    end.open()
    expect(shown(await task(id))).toMatchObject({ status: 'completed', output: 7, attempts: 1 })
  })

  it('takes its signal once: a later run gets the same, and a second signal waits for another step', async () => {
    const { serve, submitted, client, task, clock } = await stage()
    const got: unknown[] = []
    serve(async (_, ctx) => {
      got.push(await ctx.waitFor('go'))
      if (ctx.attempt < 4) throw new Error('again')
    })
    const id = await submitted()
    await client.signal(id, 'go', 1)
    await client.signal(id, 'go', 2)
    await clock.advance(10_000)
    expect(got).toEqual([1, 1, 1])
    expect((await task(id)).signals).toMatchObject([{ name: 'go', value: 2 }])
  })

  it('several waits on one name take one signal each, in order', async () => {
    const { serve, submitted, client, task, clock } = await stage()
    serve(async (_, ctx) => {
      const got: unknown[] = []
      for (const name of ['one', 'two', 'three']) got.push(await ctx.waitFor(name, { signal: 'go' }))
      return got
    })
    const id = await submitted()
    for (const value of ['a', 'b', 'c']) await client.signal(id, 'go', value)
    await clock.advance(1_000)
    expect((await task(id)).output).toEqual(['a', 'b', 'c'])
  })

  it('two waits at once on one name take one signal each, and the one without waits on', async () => {
    const { serve, submitted, client, task, clock } = await stage()
    serve((_, ctx) => Promise.all([ctx.waitFor('one', { signal: 'go' }), ctx.waitFor('two', { signal: 'go' })]))
    const id = await submitted()
    await client.signal(id, 'go', 'a')
    await clock.advance(1_000)
    expect(shown(await task(id))).toMatchObject({ status: 'pending', parked: { step: 'two', signal: 'go' } })
    await client.signal(id, 'go', 'b')
    await clock.advance(1_000)
    expect((await task(id)).output).toEqual(['a', 'b'])
  })

  it('two waits at once on two names: each signal wakes the task', async () => {
    const { serve, submitted, client, task, clock } = await stage()
    serve(async (_, ctx) => Promise.race([ctx.waitFor('yes'), ctx.waitFor('no')]))
    const [one, two] = [await submitted(), await submitted()]
    await client.signal(one, 'yes', 'y')
    await client.signal(two, 'no', 'n')
    await clock.advance(1_000)
    expect([(await task(one)).output, (await task(two)).output]).toEqual(['y', 'n'])
  })

  it('a signal of another name is kept and wakes nothing', async () => {
    const { serve, submitted, client, task, clock } = await stage()
    serve(async (_, ctx) => [await ctx.waitFor('first'), await ctx.waitFor('second')])
    const id = await submitted()
    const kept = await client.signal(id, 'second', 2)
    expect(shown(kept)).toMatchObject({ status: 'pending', availableAt: NEVER, parked: { signal: 'first' } })
    await clock.advance(HOUR)
    expect((await task(id)).attempts).toBe(1)
    await client.signal(id, 'first', 1)
    expect(shown(await task(id))).toMatchObject({ status: 'completed', output: [1, 2], attempts: 2 })
  })

  it('a signal does not make a task due that waits for a retry or for its time', async () => {
    const { client } = await stage()
    const { id, availableAt } = await client.submit('work', 1, { delay: '1h' })
    expect((await client.signal(id, 'go')).availableAt).toBe(availableAt)
  })

  it.each([undefined, null, '', 0, [], new Uint8Array([1, 2])])('a signal may be %j', async (value) => {
    const { serve, submitted, client, task } = await stage()
    const got: unknown[] = []
    serve(async (_, ctx) => void got.push(await ctx.waitFor('go')))
    const id = await submitted()
    await client.signal(id, 'go', value)
    expect((await task(id)).status).toBe('completed')
    expect(got).toEqual([value])
  })
})

describe('a wait with a timeout', () => {
  const waiting = async () => {
    const scene = await stage()
    const got: string[] = []
    scene.serve(async (_, ctx) => {
      try {
        got.push(`value ${JSON.stringify(await ctx.waitFor('go', { timeout: '1h' }))}`)
      } catch (error) {
        if (!(error instanceof SignalTimeout)) throw error
        got.push(`timeout of ${error.step}`)
      }
      if (ctx.attempt < 4) throw new Error('again')
    })
    const id = await scene.submitted()
    return { ...scene, id, got }
  }

  it('throws SignalTimeout at its deadline, and in every later run, whatever is sent then', async () => {
    const { client, clock, task, id, got } = await waiting()
    const { parked, availableAt } = await task(id)
    expect([parked?.until, availableAt]).toEqual([clock.wall() + HOUR, clock.wall() + HOUR])
    await clock.advance(HOUR - 1)
    expect(got).toEqual([])
    await clock.advance(1)
    expect(got).toEqual(['timeout of go'])
    await client.signal(id, 'go', 'too late')
    await clock.advance(10_000)
    expect(got).toEqual(['timeout of go', 'timeout of go', 'timeout of go'])
    const done = await task(id)
    expect(done.steps).toMatchObject([{ name: 'go', status: 'timed-out', signal: 'go' }])
    expect(done.signals).toMatchObject([{ value: 'too late' }])
  })

  it('a signal before the deadline is the outcome of every later run', async () => {
    const { client, clock, id, got } = await waiting()
    await clock.advance(HOUR - 1)
    await client.signal(id, 'go', 1)
    await clock.advance(2 * HOUR)
    expect(got).toEqual(['value 1', 'value 1', 'value 1'])
  })

  it('the deadline is that of the first park, however often the task runs before it', async () => {
    const { client, clock, task, id, got } = await waiting()
    const until = (await task(id)).parked?.until
    for (let i = 0; i < 2; i++) {
      await clock.advance(HOUR / 4)
      await client.cancel(id)
      await client.retry(id)
      await clock.advance(1)
      expect(shown(await task(id))).toMatchObject({ status: 'pending', parked: { until }, availableAt: until })
    }
    await clock.advanceTo(until!)
    expect(got).toEqual(['timeout of go'])
  })

  it('a signal that came between the deadline and the next run is taken', async () => {
    const { client, serve, submitted, task, clock, did } = await stage()
    serve(async (_, ctx) => {
      did.push(`run ${ctx.attempt}`)
      return ctx.waitFor('go', { timeout: '1h' })
    })
    const id = await submitted()
    await client.queue('default').pause({ reason: 'test' })
    await clock.advance(2 * HOUR)
    await client.signal(id, 'go', 'in time')
    await client.queue('default').resume()
    await clock.advance(10_000)
    expect((await task(id)).output).toBe('in time')
  })

  it('of 0 takes what is there, and otherwise throws at once', async () => {
    const { client, serve, task } = await stage()
    const [{ id: without }, { id: having }] = [await client.submit('work', 1), await client.submit('work', 2)]
    await client.signal(having, 'go', 'here')
    serve((_, ctx) => ctx.waitFor('go', { timeout: 0 }).catch((error: unknown) => (error as Error).name))
    expect([(await task(without)).output, (await task(having)).output]).toEqual(['SignalTimeout', 'here'])
    expect((await task(without)).attempts).toBe(1)
  })

  it('two timeouts that pass while the first is being written are each recorded', async () => {
    const { client, serve, submitted, lose, clock, task } = await stage()
    const names = (results: readonly PromiseSettledResult<unknown>[]) =>
      results.map((one) => (one.status === 'rejected' ? (one.reason as Error).name : one.value))
    let isSlow = false
    serve(async (_, ctx) => {
      isSlow = true
      return names(
        await Promise.allSettled([ctx.waitFor('one', { timeout: 0 }), ctx.waitFor('two', { timeout: '10ms' })]),
      )
    })
    // The write is refused a few times, and the second deadline passes meanwhile.
    let left = 5
    lose((call) => (call === 'commit' && isSlow && left-- > 0 ? 'lose-reply' : 'pass'))
    const id = await submitted()
    await clock.advance(60_000)
    const done = await task(id)
    expect(shown(done)).toMatchObject({ status: 'completed', output: ['SignalTimeout', 'SignalTimeout'] })
    await refuses('TASK_ENDED')(client.signal(id, 'one'))
  })
})

describe('a wait with a schema', () => {
  const schema = z.object({ amount: z.coerce.number().max(10) })

  it('that is none is refused before the task is parked', async () => {
    const { serve, submitted, task } = await stage()
    // As an old zod makes them.
    serve((_, ctx) => ctx.waitFor('go', { schema: { parse: () => 1 } as never }).catch(codeOf))
    expect((await task(await submitted())).output).toBe('INVALID_OPTION')
  })

  it('resolves with what the schema makes of the value', async () => {
    const { client, serve, submitted, task } = await stage()
    serve((_, ctx) => ctx.waitFor('go', { schema }))
    const id = await submitted()
    await client.signal(id, 'go', { amount: '7' })
    expect((await task(id)).output).toEqual({ amount: 7 })
  })

  it('a value that it refuses is taken, and SignalInvalid is recorded: the same in every later run', async () => {
    const { client, serve, submitted, task, clock } = await stage()
    const got: unknown[] = []
    serve(async (_, ctx) => {
      await ctx.waitFor('go', { schema }).catch((error: unknown) => {
        if (error instanceof Parked) throw error
        got.push(error)
      })
      if (ctx.attempt < 4) throw new Error('again')
    })
    const id = await submitted()
    await client.signal(id, 'go', { amount: 11 }, { signalId: 'first' })
    await client.signal(id, 'go', { amount: 1 })
    await clock.advance(10_000)
    expect(got).toHaveLength(3)
    for (const error of got) {
      expect(error).toBeInstanceOf(SignalInvalid)
      expect(error).toMatchObject({ step: 'go', signal: { id: 'first', name: 'go' } })
    }
    expect(new Set(got.map((error) => (error as Error).message)).size).toBe(1)
    const done = await task(id)
    expect(done.steps).toMatchObject([{ name: 'go', status: 'refused' }])
    expect(done.signals).toMatchObject([{ value: { amount: 1 } }])
  })

  it('that throws fails the wait, and the handler may go on with other steps', async () => {
    const { client, serve, submitted, task } = await stage()
    const broken = schema.transform(() => {
      throw new TypeError('a bug in the schema')
    })
    serve(async (_, ctx) => {
      const why = await ctx.waitFor('go', { schema: broken }).catch((error: unknown) => (error as Error).message)
      return ctx.step('after', () => why)
    })
    const id = await submitted()
    await client.signal(id, 'go', { amount: 1 })
    expect(shown(await task(id))).toMatchObject({ status: 'completed', output: 'a bug in the schema' })
  })

  it('that takes its time does not park a step that begins meanwhile', async () => {
    const { client, serve, task, did } = await stage()
    const [checked, ran] = [gate(), gate()]
    const slow = schema.transform(async (value) => {
      await checked.opened
      return value
    })
    const { id } = await client.submit('work', 1)
    await client.signal(id, 'go', { amount: 1 })
    serve(async (_, ctx) => {
      const wait = ctx.waitFor('go', { schema: slow })
      await Promise.resolve()
      setImmediate(() => {
        void ctx.step('late', async () => {
          did.push('late runs')
          await ran.opened
          did.push('late ran')
        })
        setImmediate(() => checked.open())
        setImmediate(() => setImmediate(() => ran.open()))
      })
      return wait
    })
    expect(shown(await task(id))).toMatchObject({ status: 'completed', output: { amount: 1 }, attempts: 1 })
    expect(did).toEqual(['late runs', 'late ran'])
  })
})

describe('a park', () => {
  it('waits until all steps under way have settled, and records them', async () => {
    const { serve, submitted, task, clock, did } = await stage()
    const end = gate()
    serve(async (_, ctx) => {
      await Promise.all([
        ctx.sleep('nap', '1h'),
        ctx.step('work', async () => {
          await end.opened
          did.push('worked')
        }),
      ])
      did.push('both')
    })
    const id = await submitted()
    await clock.advance(60_000)
    expect((await task(id)).status, 'the step is under way').toBe('running')
    end.open()
    const parked = await task(id)
    expect(shown(parked)).toMatchObject({ status: 'pending', parked: { step: 'nap' } })
    expect(parked.steps.map(({ name, status }) => `${name} ${status}`)).toEqual(['work done', 'nap sleeping'])
    await clock.advance(HOUR)
    expect(did).toEqual(['worked', 'both'])
    expect((await task(id)).status).toBe('completed')
  })

  it('of several at once is that of the earliest instant', async () => {
    const { serve, submitted, task, clock, did } = await stage()
    serve(async (_, ctx) => {
      await Promise.all([
        ctx.sleep('long', '3h').then(() => did.push('long')),
        ctx.sleep('short', '1h').then(() => did.push('short')),
        ctx.waitFor('go', { timeout: '2h' }).catch((error: unknown) => {
          if (error instanceof SignalTimeout) did.push('go')
          else throw error
        }),
      ])
    })
    const id = await submitted()
    const start = clock.wall()
    expect(shown(await task(id))).toMatchObject({ availableAt: start + HOUR, parked: { step: 'short' } })
    await clock.advance(HOUR)
    expect(shown(await task(id))).toMatchObject({ availableAt: start + 2 * HOUR, parked: { step: 'go' } })
    await clock.advance(HOUR)
    expect(shown(await task(id))).toMatchObject({ availableAt: start + 3 * HOUR, parked: { step: 'long' } })
    await clock.advance(HOUR)
    expect((await task(id)).status).toBe('completed')
    expect(did.toSorted()).toEqual(['go', 'go', 'long', 'short', 'short', 'short'])
  })

  it('a handler that swallows Parked counts for nothing, and is logged once for its type', async () => {
    const { client, clock, lines, did } = await stage()
    const swallow = async (_: unknown, ctx: TaskContext) => {
      await ctx.sleep('nap', '1h').catch(() => {})
      if (ctx.attempt === 1) {
        await ctx.step('after', () => void did.push('ran')).catch((error: unknown) => did.push(codeOf(error)))
        await ctx.waitFor('after that').catch((error: unknown) => did.push(codeOf(error)))
        await ctx.steps().catch((error: unknown) => did.push(codeOf(error)))
      }
      return `output of run ${ctx.attempt}`
    }
    client.worker().handle('returns', swallow).start()
    client
      .worker()
      .handle('throws', async (_, ctx) => {
        await ctx.sleep('nap', '1h').catch(() => {})
        if (ctx.attempt === 1) throw new Error('it failed')
      })
      .start()
    const tasks = await Promise.all(
      ['returns', 'returns', 'throws', 'throws'].map((type) => client.submit(type, 1, { maxRetries: 0 })),
    )
    await clock.advance(1_000)
    expect(did.slice(0, 3)).toEqual(['STALE_LEASE', 'STALE_LEASE', 'STALE_LEASE'])
    const read = (): Promise<Task[]> => Promise.all(tasks.map(({ id }) => client.get(id)))
    expect((await read()).map(({ parked }) => parked?.step)).toEqual(['nap', 'nap', 'nap', 'nap'])
    expect(lines.filter((line) => line.includes('Do not catch Parked'))).toHaveLength(2)
    expect(lines, 'and nothing else is said').toHaveLength(2)
    await clock.advance(HOUR)
    const done = await read()
    expect(done.map(({ status }) => status)).toEqual(Array(4).fill('completed'))
    expect(done.slice(0, 2).map(({ output }) => output)).toEqual(['output of run 2', 'output of run 2'])
  })

  it('a handler that neither throws nor returns after it is stuck, and its slot goes to others', async () => {
    const { client, clock, lines } = await stage()
    client
      .worker({ concurrency: 2, stuckAfter: '1s' })
      .handle('hung', async (_, ctx) => {
        await ctx.sleep('nap', '1h').catch(() => {})
        await new Promise(() => {})
      })
      .start()
    const { id } = await client.submit('hung', 1)
    await clock.advance(2_000)
    expect((await client.get(id)).parked).not.toBeNull()
    expect(lines.some((line) => line.includes('stuck') && line.includes('after it was parked'))).toBe(true)
  })

  /** Opens in the moment in which the write that parks the task is sent. */
  const parking = (lose: Stage['lose']): Promise<void> => {
    const sent = gate()
    lose((call, args) => {
      if (call === 'commit' && (args[0] as readonly Change[]).some(({ entry }) => entry.move === 'park')) sent.open()
      return 'pass'
    })
    return sent.opened
  }

  it('a step that begins while the park is being written does not run', async () => {
    const { serve, submitted, task, did, clock, lose } = await stage()
    const sent = parking(lose)
    serve(async (_, ctx) => {
      const late = sent.then(() => ctx.step('late', () => void did.push(`late in run ${ctx.attempt}`)))
      await Promise.all([ctx.sleep('nap', '1h'), late])
    })
    const id = await submitted()
    expect((await task(id)).parked).not.toBeNull()
    await clock.advance(HOUR)
    expect((await task(id)).status).toBe('completed')
    expect(did).toEqual(['late in run 2'])
  })

  it('a handler that ends while the park is being written is parked, and what it returned counts for nothing', async () => {
    const { serve, submitted, task, clock, lose, lines } = await stage()
    const sent = parking(lose)
    serve(async (_, ctx) => {
      await Promise.race([ctx.sleep('nap', '1h'), ...(ctx.attempt === 1 ? [sent] : [])])
      return `run ${ctx.attempt}`
    })
    const id = await submitted()
    expect((await task(id)).parked).not.toBeNull()
    expect(lines).toEqual([expect.stringContaining('Do not catch Parked')])
    await clock.advance(HOUR)
    expect((await task(id)).output).toBe('run 2')
  })

  it('a handler that ends before the park is sent has ended', async () => {
    const { serve, submitted, task, lines } = await stage()
    serve((_, ctx) => Promise.race([ctx.sleep('nap', '1h'), Promise.resolve('early')]))
    expect(shown(await task(await submitted()))).toMatchObject({ status: 'completed', output: 'early', attempts: 1 })
    expect(lines).toEqual([])
  })
})
