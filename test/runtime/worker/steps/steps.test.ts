/** ctx.step: what is recorded, what a later run gets, and what is refused. */
import { describe, expect, it } from 'vitest'
import { type Client, HoldfastError, PermanentError, type TaskContext } from '../../../../src/index.ts'
import { gate, movesOf, refuses, shown } from '../../setup.ts'
import { stage } from './setup.ts'

const codeOf = (error: unknown): string => (error instanceof HoldfastError ? error.code : String(error))

describe('a step', () => {
  it('runs once: a later run of its task gets what was recorded, whatever happened since', async () => {
    const { serve, submitted, did, task, clock } = await stage()
    serve(async (_, ctx) => {
      const charged = await ctx.step('charge', () => {
        did.push('charge')
        return { amount: 7, at: new Date(0) }
      })
      did.push(`run ${ctx.attempt} ${JSON.stringify(charged)}`)
      if (ctx.attempt < 3) throw new Error('later')
      return charged
    })
    const id = await submitted()
    await clock.advance(10_000)
    const seen = '{"amount":7,"at":"1970-01-01T00:00:00.000Z"}'
    expect(did).toEqual(['charge', `run 1 ${seen}`, `run 2 ${seen}`, `run 3 ${seen}`])
    expect(shown(await task(id))).toMatchObject({ status: 'completed', attempts: 3, retryCount: 2 })
  })

  it.each([
    ['undefined', undefined],
    ['null', null],
    ['an empty text', ''],
    ['bytes', new Uint8Array([0, 255])],
  ] as const)('may return %s, and every run gets the same', async (_, value) => {
    const { serve, submitted, did, task, clock } = await stage()
    const got: unknown[] = []
    serve(async (__, ctx) => {
      got.push(
        await ctx.step('one', () => {
          did.push('ran')
          return value
        }),
      )
      if (ctx.attempt === 1) throw new Error('again')
    })
    const id = await submitted()
    await clock.advance(10_000)
    expect(got).toEqual([value, value])
    expect(did).toEqual(['ran'])
    expect((await task(id)).steps[0]?.value).toEqual(value)
  })

  it('that throws fails the attempt as ever, is not recorded, and runs again; those before it do not', async () => {
    const { serve, submitted, did, task, clock } = await stage()
    serve(async (_, ctx) => {
      await ctx.step('first', () => void did.push('first'))
      await ctx.step('second', () => {
        did.push('second')
        if (ctx.attempt === 1) throw new Error('no luck')
      })
    })
    const id = await submitted()
    const failed = await task(id)
    expect(failed.lastError?.message).toBe('no luck')
    expect(failed.steps.map(({ name }) => name)).toEqual(['first'])
    await clock.advance(10_000)
    expect(did).toEqual(['first', 'second', 'second'])
    expect(shown(await task(id))).toMatchObject({ status: 'completed', retryCount: 1 })
  })

  it('is not an entry of the history, and moves only the revision', async () => {
    const { serve, submitted, task } = await stage()
    serve(async (_, ctx) => {
      await ctx.step('a', () => 1)
      await ctx.step('b', () => 2)
    })
    const done = await task(await submitted())
    expect(movesOf(done)).toEqual(['submit → pending', 'claim → running', 'complete → completed'])
    expect(done.revision).toBe(5)
    expect(done.history.map(({ n }) => n)).toEqual([1, 2, 5])
  })

  it('has a key that names the task and the step, the same in every run', async () => {
    const { serve, submitted, did, clock } = await stage()
    serve(async (_, ctx) => {
      await ctx.step('pay', ({ key }) => {
        did.push(key)
        if (ctx.attempt === 1) throw new Error('again')
      })
    })
    const id = await submitted()
    await clock.advance(10_000)
    expect(did).toEqual([`${id}:pay`, `${id}:pay`])
  })

  it('used twice in one run is STEP_REPEATED; a sleep and a wait use up their names too', async () => {
    const { serve, submitted, did } = await stage()
    serve(async (_, ctx) => {
      await ctx.step('a', () => 1)
      await ctx.step('a', () => void did.push('twice')).catch((error: unknown) => did.push(codeOf(error)))
      await ctx.sleep('a', 0).catch((error: unknown) => did.push(codeOf(error)))
      await ctx.waitFor('a').catch((error: unknown) => did.push(codeOf(error)))
      await ctx.sleep('b', 0)
      await ctx.step('b', () => 2).catch((error: unknown) => did.push(codeOf(error)))
    })
    await submitted()
    expect(did).toEqual(['STEP_REPEATED', 'STEP_REPEATED', 'STEP_REPEATED', 'STEP_REPEATED'])
  })

  it.each([
    ['empty', ''],
    ['too long', 'x'.repeat(129)],
    ['half a surrogate pair', '\ud800'],
    ['with a NUL', 'a\0b'],
    ['not a text', 7 as unknown as string],
  ])('with a name that is %s is refused before anything runs', async (_, name) => {
    const { serve, submitted, did } = await stage()
    serve(async (__, ctx) => {
      await ctx.step(name, () => void did.push('ran')).catch((error: unknown) => did.push(codeOf(error)))
    })
    await submitted()
    expect(did).toEqual(['INVALID_OPTION'])
  })

  it('takes names of up to 128 characters, of any script', async () => {
    const { serve, submitted, task } = await stage()
    const names = ['x'.repeat(128), 'Zahlung 支払い 💳', '__proto__', 'constructor']
    serve(async (_, ctx) => {
      for (const name of names) await ctx.step(name, () => name)
      if (ctx.attempt === 1) throw new Error('again')
      return names
    })
    const id = await submitted()
    expect((await task(id)).steps.map(({ name, value }) => [name, value])).toEqual(names.map((name) => [name, name]))
  })

  it.each([
    [
      'a cycle',
      () => {
        const cycle: { self?: unknown } = {}
        cycle.self = cycle
        return cycle
      },
    ],
    ['a BigInt', () => 7n],
    ['more than the payload limit', () => 'x'.repeat(1_048_577)],
  ])('whose result is %s fails the task for good with STEP_INVALID', async (_, value) => {
    const { serve, submitted, did, task } = await stage()
    serve(async (__, ctx) => {
      await ctx.step('first', () => 1)
      await ctx.step('odd', () => {
        did.push('ran')
        return value() as string
      })
    })
    const failed = await task(await submitted())
    expect(shown(failed)).toMatchObject({ status: 'failed', retryCount: 0, lastError: { code: 'STEP_INVALID' } })
    expect(failed.lastError?.message).toContain("'odd'")
    expect(did).toEqual(['ran'])
    expect(failed.steps.map(({ name }) => name)).toEqual(['first'])
  })

  it('that was recorded as something else is STEP_INVALID', async () => {
    const { serve, submitted, task, clock } = await stage()
    serve(async (_, ctx) => {
      if (ctx.attempt === 1) {
        await ctx.step('a', () => 1)
        throw new Error('deploy')
      }
      await ctx.sleep('a', '1s')
    })
    const id = await submitted()
    await clock.advance(10_000)
    expect(shown(await task(id))).toMatchObject({ status: 'failed', lastError: { code: 'STEP_INVALID' } })
  })

  it('may be dropped or added by the code between two runs; ctx.steps lists what is there', async () => {
    const { serve, submitted, task, clock } = await stage()
    const seen: (readonly string[])[] = []
    serve(async (_, ctx) => {
      if (ctx.attempt === 1) {
        await ctx.step('old', () => 1)
        throw new Error('deploy')
      }
      await ctx.step('new', () => 2)
      seen.push((await ctx.steps()).map(({ name, kind, status, value }) => `${name} ${kind} ${status} ${value}`))
    })
    const id = await submitted()
    await clock.advance(10_000)
    expect(seen).toEqual([['old step done 1', 'new step done 2']])
    expect((await task(id)).status).toBe('completed')
  })

  it('of a run whose lease was taken is STALE_LEASE, and is not recorded', async () => {
    const { serve, submitted, client, did, task, clock } = await stage()
    const end = gate()
    serve(async (_, ctx) => {
      if (ctx.attempt === 2) return
      await ctx
        .step('slow', async () => {
          await end.opened
          did.push('ran')
        })
        .catch((error: unknown) => did.push(codeOf(error)))
      await ctx.step('next', () => void did.push('next')).catch((error: unknown) => did.push(codeOf(error)))
      await ctx.steps().catch((error: unknown) => did.push(codeOf(error)))
      throw new PermanentError('a stale run cannot fail the task')
    })
    const id = await submitted()
    await client.retry(id)
    end.open()
    await clock.advance(2_000)
    expect(did).toEqual(['ran', 'STALE_LEASE', 'STALE_LEASE', 'STALE_LEASE'])
    const done = await task(id)
    expect(shown(done)).toMatchObject({ status: 'completed', attempts: 2 })
    expect(done.steps).toEqual([])
  })

  it('in a batch belongs to its own task', async () => {
    const { client, clock } = await stage()
    const ran: string[] = []
    const { id: one } = await client.submit('rows', 1)
    const { id: two } = await client.submit('rows', 2)
    const refused: string[] = []
    client
      .worker()
      .handleMany('rows', { size: 10 }, async (tasks, ctx) =>
        Promise.all(
          tasks.map(async (task) => {
            const own = ctx.of(task)
            const value = await own.step('row', ({ key }) => {
              ran.push(key)
              return `row ${task.input}`
            })
            await own.sleep('nap', '1s').catch((error: unknown) => refused.push(codeOf(error)))
            return task.input === 2 && own.attempt === 1 ? new Error('again') : value
          }),
        ),
      )
      .start()
    await clock.advance(10_000)
    expect(ran).toEqual([`${one}:row`, `${two}:row`])
    expect(refused).toEqual(['INVALID_OPTION', 'INVALID_OPTION', 'INVALID_OPTION'])
    expect([(await client.get(one)).output, (await client.get(two)).output]).toEqual(['row 1', 'row 2'])
  })
})

describe('writes', () => {
  const counting = async () => {
    const scene = await stage()
    let [commits, gets] = [0, 0]
    scene.lose((call) => {
      if (call === 'commit') commits++
      if (call === 'get') gets++
      return 'pass'
    })
    return { ...scene, commits: () => commits, gets: () => gets }
  }

  it('one for each step, one more for the end, and no read in the first run', async () => {
    const { serve, submitted, commits, gets } = await counting()
    serve(async (_, ctx) => {
      for (let i = 0; i < 10; i++) await ctx.step(`step ${i}`, () => i)
    })
    await submitted()
    expect([commits(), gets()]).toEqual([11, 0])
  })

  it('steps that end in one tick are one write', async () => {
    const { serve, submitted, task, commits } = await counting()
    serve(async (_, ctx) => {
      await Promise.all(Array.from({ length: 50 }, (__, i) => ctx.step(`step ${i}`, () => i)))
    })
    const id = await submitted()
    expect(commits()).toBe(2)
    const done = await task(id)
    expect(done.steps).toHaveLength(50)
    expect(done.revision).toBe(4)
  })

  it('a later run reads the journal once', async () => {
    const { serve, submitted, clock, gets } = await counting()
    serve(async (_, ctx) => {
      await Promise.all([ctx.step('a', () => 1), ctx.step('b', () => 2)])
      await ctx.step('c', () => 3)
      if (ctx.attempt === 1) throw new Error('again')
    })
    await submitted()
    await clock.advance(10_000)
    expect(gets()).toBe(1)
  })

  it('a task without steps writes and reads nothing more', async () => {
    const { serve, submitted, commits, gets } = await counting()
    serve(() => 'done')
    await submitted()
    expect([commits(), gets()]).toEqual([1, 0])
  })
})

describe('limits', () => {
  const manySteps = (count: number, value: unknown) => async (_: unknown, ctx: TaskContext) => {
    const some = (await ctx.steps()).length
    await Promise.all(Array.from({ length: count - some }, (__, i) => ctx.step(`step ${some + i}`, () => value)))
    return count
  }

  it('a task has 1,000 steps, and the next fails it for good with STEPS_TOO_LARGE', async () => {
    const { serve, submitted, task } = await stage()
    serve(async (input, ctx) => {
      await manySteps(1_000, 1)(input, ctx)
      if (ctx.task.priority === 1) await ctx.step('one more', () => 1)
    })
    const [fits, exceeds] = [await submitted(), await submitted({ priority: 1 })]
    expect(shown(await task(fits))).toMatchObject({ status: 'completed' })
    const failed = await task(exceeds)
    expect(shown(failed)).toMatchObject({ status: 'failed', retryCount: 0, lastError: { code: 'STEPS_TOO_LARGE' } })
    expect(failed.steps).toHaveLength(1_000)
  })

  it('sleeps and waits count as steps, also a wait whose signal is there already', async () => {
    const { client, serve, submitted, task } = await stage()
    const end = gate()
    serve(async (input, ctx) => {
      await end.opened
      await manySteps(1_000, 1)(input, ctx)
      if (ctx.task.priority === 1) await ctx.sleep('one more', '1s')
      else await ctx.waitFor('one more', { signal: 'go' })
    })
    const [sleeper, waiter] = [await submitted({ priority: 1 }), await submitted()]
    await client.signal(waiter, 'go')
    end.open()
    for (const id of [sleeper, waiter])
      expect(shown(await task(id))).toMatchObject({ status: 'failed', lastError: { code: 'STEPS_TOO_LARGE' } })
  })

  it('the results are together at most four times the payload limit, signals that were taken included', async () => {
    const { serve, submitted, task, client } = await stage({ maxPayload: 1_000 })
    serve(async (_, ctx) => {
      for (let i = 0; i < 3; i++) await ctx.step(`step ${i}`, () => 'x'.repeat(998))
      if (ctx.task.priority === 1) await ctx.waitFor('go')
      await ctx.step('last', () => (ctx.task.priority === 2 ? 'x'.repeat(998) : 'xxx'))
      if (ctx.task.priority === 2) await ctx.step('nothing', () => undefined)
    })
    const [fits, exactly, taken] = [
      await submitted(),
      await submitted({ priority: 2 }),
      await submitted({ priority: 1 }),
    ]
    expect((await task(fits)).status).toBe('completed')
    expect((await task(exactly)).status, 'an empty result takes no room').toBe('completed')
    await client.signal(taken, 'go', 'x'.repeat(997))
    const failed = await task(taken)
    expect(shown(failed)).toMatchObject({ status: 'failed', lastError: { code: 'STEPS_TOO_LARGE' } })
    expect(failed.lastError?.message).toContain('the limit is 4000')
  })

  it.each([4_095, 4_096, 4_097, 100_000])('a result of %i characters comes back as it went in', async (length) => {
    const { serve, submitted, task, clock } = await stage()
    serve(async (_, ctx) => {
      const text = await ctx.step('text', () => 'é'.repeat(length))
      if (ctx.attempt === 1) throw new Error('again')
      return text.length
    })
    const id = await submitted()
    await clock.advance(10_000)
    expect((await task(id)).output).toBe(length)
  })
})

describe('the first step', () => {
  it('clears a ttl, which means "start by": the task no longer expires', async () => {
    const { serve, submitted, task, clock } = await stage()
    serve(async (_, ctx) => {
      await ctx.step('a', () => 1)
      if (ctx.attempt < 3) throw ctx.reschedule('1h')
    })
    const id = await submitted({ ttl: '1m' })
    expect((await task(id)).expiresAt).toBeNull()
    await clock.advance(3 * 3_600_000)
    expect((await task(id)).status).toBe('completed')
  })

  it('and so does the first park', async () => {
    const { serve, submitted, task, clock } = await stage()
    serve(async (_, ctx) => ctx.sleep('nap', '1h'))
    const id = await submitted({ ttl: '1m' })
    expect((await task(id)).expiresAt).toBeNull()
    await clock.advance(3_600_000)
    expect((await task(id)).status).toBe('completed')
  })

  it('a signal does not', async () => {
    const { client, clock } = await stage()
    const { id, expiresAt } = await client.submit('work', 1, { ttl: '1m' })
    await client.signal(id, 'go')
    expect((await client.get(id)).expiresAt).toBe(expiresAt)
    await clock.advance(60_000)
    await refuses('CANNOT_AMEND')(client.runNow(id))
  })
})

describe('a handler that does not await its step', () => {
  const unhandled = async (client: Client, work: () => Promise<void>): Promise<unknown[]> => {
    const seen: unknown[] = []
    const listener = (error: unknown): void => void seen.push(error)
    process.on('unhandledRejection', listener)
    try {
      await work()
      await client.now()
    } finally {
      process.off('unhandledRejection', listener)
    }
    return seen
  }

  it('and ends before a sleep is written is not parked, and the process lives on', async () => {
    const { client, serve, submitted, task } = await stage()
    serve((_, ctx) => {
      void ctx.sleep('nap', '1h')
      return 'done'
    })
    let status = ''
    const seen = await unhandled(client, async () => {
      status = (await task(await submitted())).status
    })
    expect([status, seen]).toEqual(['completed', []])
  })

  it('and ends before the step is recorded has completed without it, is told so once for its type, and the process lives on', async () => {
    const { client, clock, serve, submitted, task, lines } = await stage()
    const { opened, open } = gate()
    serve((_, ctx) => {
      void ctx.step('slow', () => opened)
      return 'done'
    })
    const seen = await unhandled(client, async () => {
      const ids = [await submitted(), await submitted()]
      open()
      await clock.settle()
      for (const id of ids)
        expect(shown(await task(id))).toMatchObject({ status: 'completed', output: 'done', steps: [] })
    })
    expect(seen).toEqual([])
    expect(lines).toEqual([expect.stringMatching(/'work' returned while a step was under way.*Await every ctx.step/)])
  })

  it('still hears what its function throws', async () => {
    const { client, clock, serve, submitted } = await stage()
    const { opened, open } = gate()
    serve(async (_, ctx) => {
      void ctx.step('fails', () => Promise.reject(new Error('no paper')))
      await opened
    })
    const seen = await unhandled(client, async () => void (await submitted()))
    expect(seen).toEqual([expect.objectContaining({ message: 'no paper' })])
    open()
    await clock.settle()
  })
})
