/** Tasks with steps in the hands of operators: cancel, retry, replay, amend, export, import, move, views and why. */
import { describe, expect, it } from 'vitest'
import { type Client, connect, silentLogger, type TaskContext } from '../../../../src/index.ts'
import { openMemory } from '../../../../src/store/memory/store.ts'
import { gate, keptOpen, movesOf, refuses, shown } from '../../setup.ts'
import { type Stage, stage } from './setup.ts'

const HOUR = 3_600_000

/** Two steps, a signal between them, and a sleep; the last step fails in runs of priority 1. */
const order = (did: string[]) => async (_: unknown, ctx: TaskContext) => {
  const paid = await ctx.step('pay', ({ key }) => {
    did.push(key)
    return 7
  })
  const approved = await ctx.waitFor('approved')
  await ctx.sleep('grace', '1h')
  if (ctx.task.priority === 1) throw new Error('not shipped')
  return ctx.step('ship', ({ key }) => {
    did.push(key)
    return [paid, approved]
  })
}

describe('a cancel', () => {
  it('of a parked task is at once, and it takes no more signals', async () => {
    const { client, serve, submitted, did, task, clock } = await stage()
    serve(order(did))
    const id = await submitted()
    expect(shown(await client.cancel(id))).toMatchObject({ status: 'cancelled', parked: null })
    await refuses('TASK_ENDED')(client.signal(id, 'approved', 1))
    await clock.advance(2 * HOUR)
    expect(shown(await task(id))).toMatchObject({ status: 'cancelled', attempts: 1 })
  })

  it('while a step is under way: the step is recorded, and a park after it ends the task as cancelled', async () => {
    const { client, serve, submitted, task, clock } = await stage()
    const end = gate()
    const reasons: string[] = []
    serve(async (_, ctx) => {
      ctx.signal.addEventListener('abort', () => reasons.push(ctx.signal.reason.kind))
      await ctx.step('slow', () => end.opened)
      await ctx.sleep('nap', '1h')
    })
    const id = await submitted()
    await client.cancel(id)
    await clock.advance(2_000)
    expect(reasons).toEqual(['cancelled'])
    end.open()
    const done = await task(id)
    expect(shown(done)).toMatchObject({ status: 'cancelled', attempts: 1, parked: null, lease: null })
    expect(done.steps.map(({ name, status }) => `${name} ${status}`)).toEqual(['slow done'])
    expect(movesOf(done).at(-1)).toBe('park → cancelled')
  })

  it('while a step is under way does not undo what completes', async () => {
    const { client, serve, submitted, task } = await stage()
    const end = gate()
    serve((_, ctx) => ctx.step('slow', () => end.opened.then(() => 'made it')))
    const id = await submitted()
    await client.cancel(id)
    end.open()
    expect(shown(await task(id))).toMatchObject({ status: 'completed', output: 'made it' })
  })

  it('between a step and a park: the park ends the task as cancelled', async () => {
    const { client, serve, submitted, task } = await stage()
    const end = gate()
    serve(async (_, ctx) => {
      await ctx.step('quick', () => 1)
      await end.opened
      await ctx.waitFor('go')
    })
    const id = await submitted()
    await client.cancel(id)
    end.open()
    expect(shown(await task(id))).toMatchObject({ status: 'cancelled' })
  })

  it('and a signal that is there: the wait is over, and what completes is completed', async () => {
    const { client, serve, submitted, task } = await stage()
    const end = gate()
    serve(async (_, ctx) => {
      await end.opened
      return ctx.waitFor('go')
    })
    const id = await submitted()
    await client.signal(id, 'go', 7)
    await client.cancel(id)
    end.open()
    expect(shown(await task(id))).toMatchObject({ status: 'completed', output: 7 })
  })
})

describe('what is recorded stays', () => {
  const parked = async (): Promise<Stage & { readonly id: string }> => {
    const scene = await stage()
    scene.serve(order(scene.did))
    const id = await scene.submitted({ maxRetries: 0 })
    return { ...scene, id }
  }

  it('through cancel and retry', async () => {
    const { client, did, task, clock, id } = await parked()
    await client.cancel(id)
    await client.retry(id)
    await clock.settle()
    await client.signal(id, 'approved', 'yes')
    await clock.advance(HOUR)
    expect((await task(id)).output).toEqual([7, 'yes'])
    expect(did).toEqual([`${id}:pay`, `${id}:ship`])
  })

  const failed = async () => {
    const scene = await stage()
    scene.serve(order(scene.did))
    const id = await scene.submitted({ maxRetries: 0, priority: 1 })
    await scene.client.signal(id, 'approved', 'yes')
    await scene.clock.advance(HOUR)
    expect((await scene.task(id)).status).toBe('failed')
    return { ...scene, id }
  }

  it('through a failure and a replay', async () => {
    const { client, did, task, clock, id } = await failed()
    await client.deadLetters.replay(id)
    await clock.settle()
    const again = await task(id)
    expect(shown(again)).toMatchObject({ status: 'failed', generation: 0, replayCount: 1 })
    expect(again.steps.map(({ name }) => name)).toEqual(['pay', 'approved', 'grace'])
    expect(did).toEqual([`${id}:pay`])
  })

  it('but not through a fresh replay: the generation is in the keys of its steps, and its signals are gone', async () => {
    const { client, did, task, clock, id } = await failed()
    const before = await client.get(id)
    await client.deadLetters.replay(id, { fresh: true })
    const replayed = await client.get(id)
    expect(before.steps).toHaveLength(3)
    expect(shown(replayed)).toMatchObject({ generation: 1, replayCount: 1 })
    expect([replayed.steps, replayed.signals]).toEqual([[], []])
    await clock.settle()
    expect(did).toEqual([`${id}:pay`, `${id}:1:pay`])
    expect(shown(await task(id))).toMatchObject({ parked: { step: 'approved' } })
    await client.signal(id, 'approved', 'again')
    await clock.advance(HOUR)
    expect((await task(id)).status).toBe('failed')
    await client.deadLetters.replay(id, { fresh: true })
    await clock.settle()
    expect(did.at(-1)).toBe(`${id}:2:pay`)
  })

  it('and not with the new task of a replay as new', async () => {
    const { client, did, clock, id } = await failed()
    await client.deadLetters.replay(id, { asNew: true })
    await clock.settle()
    const fresh = await client.get((await client.get(id)).replayedAs!)
    expect(fresh.id).not.toBe(id)
    expect(shown(fresh)).toMatchObject({ generation: 0, parked: { step: 'approved' } })
    expect(did).toEqual([`${id}:pay`, `${fresh.id}:pay`])
  })
})

describe('amend', () => {
  it('of a task with steps: priority, tags and group, and it stays parked; nothing else', async () => {
    const { client, serve, submitted, did, task, clock } = await stage()
    serve(order(did))
    const id = await submitted()
    const before = await task(id)
    const amended = await client.amend(id, { priority: 5, tags: { a: 'b' }, group: 'acme' })
    expect(shown(amended)).toMatchObject({
      priority: 5,
      tags: { a: 'b' },
      group: 'acme',
      parked: before.parked,
      availableAt: before.availableAt,
    })
    for (const change of [{ input: 2 }, { delay: '1m' }, { ttl: '1m' }])
      await refuses('CANNOT_AMEND')(client.amend(id, change))
    await client.signal(id, 'approved', 1)
    await clock.advance(HOUR)
    expect((await task(id)).status).toBe('completed')
  })

  it('of a task that has only signals: everything', async () => {
    const { client } = await stage()
    const { id } = await client.submit('work', 1)
    await client.signal(id, 'go')
    expect((await client.amend(id, { input: 2, delay: '1h' })).input).toBe(2)
  })

  it('runNow of a task that waits for a signal is CANNOT_AMEND and names it', async () => {
    const { client, serve, submitted, did, task } = await stage()
    serve(order(did))
    const id = await submitted()
    await task(id)
    await refuses('CANNOT_AMEND', /waits for signal 'approved'/)(client.runNow(id))
  })
})

describe('the view parked', () => {
  it('is neither scheduled nor retrying, in list, count and stats, and ends when the task is due', async () => {
    const { client, serve, submitted, did, task, clock } = await stage()
    serve(order(did))
    const [first, second] = [await submitted(), await submitted()]
    const { id: later } = await client.submit('work', 1, { delay: '2h' })
    const ids = async (status: 'parked' | 'scheduled' | 'retrying' | 'ready' | 'pending') =>
      (await client.list({ status })).tasks.map(({ id }) => id)
    const counts = async (status: 'parked' | 'scheduled' | 'retrying' | 'ready') =>
      (await client.count({ status })).count
    expect((await ids('parked')).toSorted()).toEqual([first, second].toSorted())
    expect([await ids('scheduled'), await ids('retrying'), await ids('ready')]).toEqual([[later], [], []])
    expect((await ids('pending')).length).toBe(3)
    expect([await counts('parked'), await counts('scheduled'), await counts('ready')]).toEqual([2, 1, 0])
    const stats = await client.stats()
    expect(JSON.stringify(stats)).toContain('"parked":2')
    await client.signal(first, 'approved', 1)
    await task(first)
    await client.queue('default').pause({ reason: 'test' })
    await clock.advance(HOUR)
    expect([await counts('parked'), await counts('ready')], 'its sleep is over').toEqual([1, 1])
  })

  it('why names the step, the signal and the time', async () => {
    const { client, serve, submitted, did, task, clock } = await stage()
    serve(order(did))
    const id = await submitted()
    expect(JSON.stringify(await client.why(id))).toContain("It waits for signal 'approved', without a limit.")
    await client.signal(id, 'aproved', 1)
    expect((await client.why(id)).sentence, 'a misspelt one').toBe(
      "It waits for signal 'approved', without a limit. 1 signal has come that no step has taken: 'aproved'.",
    )
    for (const name of ['b', 'b', 'c', 'd']) await client.signal(id, name, 1)
    expect((await client.why(id)).sentence).toMatch(/ 5 signals have come .*: 'aproved', 'b', 'c', …\.$/)
    await client.signal(id, 'approved', 1)
    await task(id)
    const until = new Date(clock.wall() + HOUR).toISOString().slice(0, 19)
    expect(JSON.stringify(await client.why(id))).toContain(`It sleeps in step 'grace' until ${until}`)
  })
})

describe('export, import and move', () => {
  const elsewhere = async ({ clock }: Stage): Promise<Client> => {
    const store = openMemory({ wall: () => clock.wall() })
    return connect(keptOpen(store), { clock, random: clock.random, logger: silentLogger, name: 'there' })
  }

  /** Parked in the middle, with a signal that no step has taken. */
  const middle = async () => {
    const scene = await stage()
    const worker = scene.client.worker({ id: 'w1' }).handle('work', order(scene.did)).start()
    const id = await scene.submitted()
    await scene.client.signal(id, 'approved', 'yes')
    await scene.client.signal(id, 'noise', { n: 1 }, { signalId: 'n1' })
    await scene.clock.settle()
    await scene.passing(worker.stop())
    expect(shown(await scene.task(id))).toMatchObject({ parked: { step: 'grace' } })
    return { ...scene, id }
  }

  const goesOn = async (there: Client, { clock, did, id, client, passing }: Stage & { id: string }) => {
    const [here, before] = [await client.get(id), await there.get(id)]
    expect(before.steps).toEqual(here.steps)
    expect(before.signals).toEqual(here.signals)
    expect((await passing(there.signal(id, 'noise', 2, { signalId: 'n1' }))).signals).toHaveLength(1)
    there.worker().handle('work', order(did)).start()
    await clock.advance(HOUR)
    expect(shown(await there.get(id))).toMatchObject({ status: 'completed', output: [7, 'yes'] })
    expect(did).toEqual([`${id}:pay`, `${id}:ship`])
    await passing(there.close())
  }

  it('export and import carry what is recorded, and the task goes on there', async () => {
    const scene = await middle()
    const there = await elsewhere(scene)
    const lines: string[] = []
    for await (const line of scene.client.export()) lines.push(line)
    const before = await scene.client.get(scene.id)
    await scene.passing(
      there.import(async function* () {
        yield* lines
      }),
    )
    expect(shown(await there.get(scene.id))).toMatchObject({ parked: before.parked, availableAt: before.availableAt })
    await goesOn(there, scene)
  })

  it('a move does too, and the copy that stays says so to who signals it', async () => {
    const scene = await middle()
    const there = await elsewhere(scene)
    expect(await scene.passing(scene.client.moveTo(there))).toMatchObject({ moved: 1, stopped: null })
    await refuses('TASK_MOVED')(scene.client.signal(scene.id, 'approved'))
    await goesOn(there, scene)
  })
})
