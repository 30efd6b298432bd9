/** The corners of durable steps on every store, by the store's own clock: lost replies, bursts, swallowed parks, operators in between, other stores. */
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { Change } from '../src/core/task.ts'
import { type Client, connect, type Handler, HoldfastError, silentLogger, type Task } from '../src/index.ts'
import type { Store } from '../src/store/store.ts'
import { type Fate, type LossPlan, lossy } from '../src/testing/lossy-store.ts'
import { gate, keptOpen, shown } from './runtime/setup.ts'
import { type OpenStore, stores } from './stores.ts'

const SLOW = 180_000
const PATIENCE = { timeout: 90_000, interval: 50 } as const
const BURST = 200

interface Scene {
  readonly client: Client
  /** What handlers noted, in order. */
  readonly did: string[]
  readonly warnings: string[]
  /** Decides the fate of each call of the worker to the store. */
  lose(plan: LossPlan): void
  /** A worker with this handler of the type 'work'; `client`: of another store. */
  serve(handler: Handler, client?: Client): void
  submitted(options?: Parameters<Client['submit']>[2]): Promise<Task>
  /** The task when it is parked in this step. */
  parked(id: string, step: string): Promise<Task>
  ended(id: string, client?: Client): Promise<Task>
  /** A client of another, empty store of the same kind. */
  elsewhere(): Promise<Client>
}

const withScene = async (open: OpenStore, work: (scene: Scene) => Promise<void>): Promise<void> => {
  const ending: (() => Promise<unknown>)[] = []
  const opened = async (through: (store: Store) => Store): Promise<Client[]> => {
    const store = await open()
    ending.push(() => store.close())
    const warn = (message: string): void => void warnings.push(message)
    const options = { logger: { ...silentLogger, warn } }
    const clients = [await connect(keptOpen(store), options), await connect(through(keptOpen(store)), options)]
    for (const client of clients) ending.push(() => client.close())
    return clients
  }
  const warnings: string[] = []
  let plan: LossPlan = () => 'pass'
  try {
    const [client, server] = await opened((store) => lossy(store, (call, args) => plan(call, args)))
    const scene: Scene = {
      client: client!,
      did: [],
      warnings,
      lose: (next) => {
        plan = next
      },
      serve: (handler, of = server!) => {
        const worker = of.worker({ concurrency: 4, pollInterval: '100ms' }).handle('work', handler).start()
        ending.push(() => worker.stop({ timeout: 0 }))
      },
      submitted: (options) => client!.submit('work', null, options),
      parked: async (id, step) => {
        await expect.poll(async () => (await client!.get(id)).parked?.step, PATIENCE).toBe(step)
        return client!.get(id)
      },
      ended: (id, of = client!) => of.waitForEnd(id, { timeout: '90s' }),
      elsewhere: async () => (await opened((store) => store))[0]!,
    }
    await work(scene)
  } finally {
    for (const end of ending.reverse()) await end()
  }
}

const codeOf = (error: unknown): string => (error instanceof HoldfastError ? error.code : String(error))
const stepsOf = ({ steps }: Task): unknown[] => steps.map(({ name, status, value }) => [name, status, value])
const recordsStep = (name: string, args: readonly unknown[]): boolean =>
  (args[0] as readonly Change[]).some(({ journal }) => journal?.some((entry) => entry.name === name))

/** Two steps with a signal and a sleep between them; runs of priority 1 fail before the last. */
const order =
  (did: string[]): Handler =>
  async (_, ctx) => {
    const paid = await ctx.step('pay', ({ key }) => {
      did.push(key)
      return 7
    })
    const approved = await ctx.waitFor('approved')
    await ctx.sleep('grace', '300ms')
    if (ctx.task.priority === 1) throw new Error('not shipped')
    return ctx.step('ship', ({ key }) => {
      did.push(key)
      return [paid, approved]
    })
  }

for (const { name, open } of stores) {
  describe(`steps on ${name}`, () => {
    if (typeof open === 'string') {
      it('is tried', (context) => context.skip(`${name} could not be started: ${open}`))
      return
    }
    const scene = (sentence: string, work: (scene: Scene) => Promise<void>): void =>
      void it(sentence, { timeout: SLOW }, () => withScene(open, work))

    scene("the lost request and the lost reply of a second step are not taken for the first's", async (all) => {
      const { serve, submitted, ended, lose, did } = all
      const fates: Fate[] = ['drop-request', 'lose-reply', 'drop-request']
      lose((call, args) => (call === 'commit' && recordsStep('two', args) ? (fates.shift() ?? 'pass') : 'pass'))
      serve(async (_, ctx) => {
        for (const step of ['one', 'two', 'three'])
          did.push(await ctx.step(step, () => `result of ${step} in ${ctx.attempt}`))
      })
      const done = await ended((await submitted()).id)
      const results = ['one', 'two', 'three'].map((step) => `result of ${step} in 1`)
      expect(shown(done)).toMatchObject({ status: 'completed', attempts: 1 })
      expect(did).toEqual(results)
      expect(done.steps.map(({ value }) => value)).toEqual(results)
      expect(done.revision, 'each was written once').toBe(6)
      expect(fates.length, 'faults were met').toBeLessThan(3)
    })

    scene(`of ${BURST} signals while the holder completes each is kept or refused`, async (all) => {
      const { client, serve, submitted, ended } = all
      const [begun, end] = [gate(), gate()]
      serve(async (_, ctx) => {
        begun.open()
        await end.opened
        await ctx.step('last', () => 'result')
        return 'done'
      })
      const { id } = await submitted({ maxRetries: 0 })
      await begun.opened
      const sent = Array.from({ length: BURST }, async (_, i) => {
        if (i === BURST / 4) end.open()
        return client.signal(id, 'go', i).then(() => 'kept', codeOf)
      })
      const results = await Promise.all(sent)
      const done = await ended(id)
      expect(shown(done)).toMatchObject({ status: 'completed', output: 'done', attempts: 1 })
      expect(results.filter((one) => one !== 'kept' && one !== 'TASK_ENDED')).toEqual([])
      const kept = results.flatMap((one, i) => (one === 'kept' ? [i] : []))
      expect(done.signals.map(({ value }) => value as number).toSorted((a, b) => a - b)).toEqual(kept)
    })

    scene('what a handler does after it swallowed Parked counts for nothing', async (all) => {
      const { serve, submitted, ended, parked, did, warnings, client } = all
      serve(async (_, ctx) => {
        await ctx.waitFor('go').catch(() => {})
        if (ctx.attempt === 1) await ctx.step('after', () => did.push('ran')).catch((error) => did.push(codeOf(error)))
        return `run ${ctx.attempt}`
      })
      const { id } = await submitted({ maxRetries: 0 })
      await parked(id, 'go')
      await client.signal(id, 'go')
      expect(shown(await ended(id))).toMatchObject({ status: 'completed', output: 'run 2' })
      expect(did).toEqual(['STALE_LEASE'])
      expect(warnings.filter((line) => line.includes('Do not catch Parked'))).toHaveLength(1)
    })

    scene('a step beside a sleep is recorded before the task is parked, and runs once', async (all) => {
      const { serve, submitted, ended, parked, did, client } = all
      const end = gate()
      serve(async (_, ctx) => {
        const both = await Promise.all([
          ctx.sleep('nap', '1h'),
          ctx.step('work', async () => {
            did.push(`run ${ctx.attempt}`)
            await end.opened
            return 'worked'
          }),
        ])
        return both[1]
      })
      const { id } = await submitted()
      await expect.poll(() => did.length, PATIENCE).toBe(1)
      expect((await client.get(id)).status, 'its step is under way').toBe('running')
      end.open()
      expect(stepsOf(await parked(id, 'nap'))).toEqual([
        ['work', 'done', 'worked'],
        ['nap', 'sleeping', undefined],
      ])
      await client.runNow(id)
      expect(shown(await ended(id))).toMatchObject({ status: 'completed', output: 'worked', attempts: 2 })
      expect(did).toEqual(['run 1'])
    })

    scene('the end of a sleep and the deadline of a wait do not move from run to run', async (all) => {
      const { serve, submitted, parked, client, did } = all
      serve(async (_, ctx) => {
        did.push(`run ${ctx.attempt}`)
        await ctx.sleep('nap', '1h')
        await ctx.waitFor('go', { timeout: '2h' })
      })
      const { id } = await submitted({ maxRetries: 0 })
      const again = async (step: string): Promise<[number, number]> => {
        const first = await parked(id, step)
        // So that an instant that is counted from the second run is another one.
        await pause(20)
        await client.cancel(id)
        await client.retry(id)
        const second = await parked(id, step)
        expect(second.availableAt).toBe(second.parked!.until)
        return [first.parked!.until!, second.parked!.until!]
      }
      const [nap, sameNap] = await again('nap')
      await client.runNow(id)
      const [go, sameGo] = await again('go')
      expect([sameNap, sameGo]).toEqual([nap, go])
      expect(did).toEqual(['run 1', 'run 2', 'run 3', 'run 4'])
    })

    scene(
      'a cancel stops a parked task, one whose step is under way, and one between a step and a park',
      async (all) => {
        const { serve, submitted, ended, parked, client, did } = all
        const gates = { step: gate(), between: gate() }
        serve(async (_, ctx) => {
          const { where } = ctx.task.tags as { where: keyof typeof gates | 'parked' }
          await ctx.step('one', async () => {
            if (where !== 'step') return
            did.push(where)
            await gates.step.opened
          })
          if (where === 'between') {
            did.push(where)
            await gates.between.opened
          }
          await ctx.sleep('nap', '1h')
        })
        const ids = Object.fromEntries(
          await Promise.all(
            ['parked', 'step', 'between'].map(async (where) => [where, (await submitted({ tags: { where } })).id]),
          ),
        )
        await parked(ids.parked, 'nap')
        expect((await client.cancel(ids.parked)).status, 'at once').toBe('cancelled')
        for (const where of ['step', 'between'] as const) {
          await expect.poll(() => did, PATIENCE).toContain(where)
          expect((await client.cancel(ids[where])).status).toBe('running')
          gates[where].open()
          const done = await ended(ids[where])
          expect(shown(done)).toMatchObject({ status: 'cancelled', attempts: 1, parked: null, lease: null })
          expect(stepsOf(done)).toEqual([['one', 'done', undefined]])
        }
        await expect(client.signal(ids.parked, 'go')).rejects.toMatchObject({ code: 'TASK_ENDED' })
      },
    )

    scene('steps stay through a retry and a replay, and are forgotten by a fresh replay', async (all) => {
      const { serve, submitted, ended, parked, client, did } = all
      serve(order(did))
      const { id } = await submitted({ maxRetries: 0, priority: 1 })
      await parked(id, 'approved')
      await client.cancel(id)
      await client.retry(id)
      await parked(id, 'approved')
      await client.signal(id, 'approved', 'yes')
      const { status, attempts } = await ended(id)
      expect(status).toBe('failed')
      await client.deadLetters.replay(id)
      // On a slow store the sleep may be over before it could be parked, and a run fewer is needed.
      await expect.poll(async () => (await client.get(id)).attempts, PATIENCE).toBe(attempts + 1)
      const again = await ended(id)
      expect(shown(again)).toMatchObject({ status: 'failed', generation: 0, replayCount: 1 })
      expect(again.steps.map(({ name: step }) => step)).toEqual(['pay', 'approved', 'grace'])
      expect(did).toEqual([`${id}:pay`])
      await client.deadLetters.replay(id, { fresh: true })
      expect(stepsOf(await parked(id, 'approved'))).toEqual([
        ['pay', 'done', 7],
        ['approved', 'waiting', undefined],
      ])
      expect(did).toEqual([`${id}:pay`, `${id}:1:pay`])
      await client.cancel(id)
    })

    /** What is recorded has come to the other store, and the task goes on there. */
    const goesOn = async (there: Client, id: string, { client, ended, did, serve }: Scene): Promise<void> => {
      const [before, after] = [await client.get(id), await there.get(id)]
      expect(stepsOf(after)).toEqual(stepsOf(before))
      expect(shown(after)).toMatchObject({ status: 'pending', parked: { step: 'approved', signal: 'approved' } })
      expect((await there.signal(id, 'noise', 2, { signalId: 'n1' })).signals, 'a known one').toHaveLength(1)
      serve(order(did), there)
      await there.signal(id, 'approved', 'yes')
      expect(shown(await ended(id, there))).toMatchObject({ status: 'completed', output: [7, 'yes'] })
      expect(did).toEqual([`${id}:pay`, `${id}:ship`])
    }

    scene('export and import carry a task in the middle of its steps, and it goes on there', async (all) => {
      const { serve, submitted, parked, client, did, elsewhere } = all
      serve(order(did))
      const { id } = await submitted()
      await parked(id, 'approved')
      await client.signal(id, 'noise', { n: 1 }, { signalId: 'n1' })
      const there = await elsewhere()
      const lines: string[] = []
      for await (const line of client.export()) lines.push(line)
      await there.import(async function* () {
        yield* lines
      })
      await goesOn(there, id, all)
    })

    scene('a live move carries a task whose step is under way when it parks, and it goes on there', async (all) => {
      const { serve, submitted, client, did, elsewhere } = all
      const [begun, end] = [gate(), gate()]
      serve(async (input, ctx) => {
        await ctx.step('slow', () => {
          begun.open()
          return end.opened
        })
        return order(did)(input, ctx)
      })
      const { id } = await submitted()
      await begun.opened
      await client.signal(id, 'noise', { n: 1 }, { signalId: 'n1' })
      const there = await elsewhere()
      const moving = client.moveTo(there, { live: true, onProgress: ({ waiting }) => waiting > 0 && end.open() })
      expect(await moving).toMatchObject({ moved: 1, stopped: null })
      await expect(client.signal(id, 'approved')).rejects.toMatchObject({ code: 'TASK_MOVED' })
      await goesOn(there, id, all)
    })
  })
}
