/** Moving everything from one store to another: what arrives, what stays, what is refused, and what a killed mover leaves. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Bug, Scene } from './scene.ts'

const setScene = async (): Promise<Scene> => {
  const scene = new Scene()
  await scene.set()
  onTestFinished(() => scene.end())
  return scene
}

describe('a move with live workers on both sides', () => {
  it('takes everything along: nothing runs twice, nothing is lost, keys, schedules and pauses hold', async () => {
    const scene = await setScene()
    const { report, writes } = await scene.move()
    expect(report).toMatchObject({ stopped: null, conflicts: [], schedules: 1, keys: 1, deduplicated: 0 })
    expect(writes).toBeGreaterThan(15)
    expect(await scene.wrongIn()).toEqual([])
    const sides = new Set(scene.runs.filter(({ what }) => what === 'end').map(({ side }) => side))
    expect(sides).toEqual(new Set(['from', 'to']))
    expect(scene.thief).toBe(false)
  })

  it('takes limits and paused groups along: the new store holds back what the old one did', async () => {
    const scene = await setScene()
    await scene.old.queue('mail').limit({ concurrency: 1, perGroup: 1 })
    await scene.old.queue('default').pause({ group: 'acme' })
    await scene.new.queue('default').limit({ concurrency: 9 })
    const { id } = await scene.old.submit('work', 'held', { group: 'acme' })
    expect((await scene.move()).report).toMatchObject({ stopped: null, conflicts: [] })
    expect(await scene.new.queue('mail').limits()).toMatchObject({ concurrency: 1, perGroup: 1 })
    expect(await scene.new.queue('default').limits()).toMatchObject({ concurrency: 9 })
    await scene.pass(10_000)
    expect(await scene.new.get(id)).toMatchObject({ status: 'pending', group: 'acme', attempts: 0 })
    await scene.new.queue('default').resume({ group: 'acme' })
    await scene.pass(10_000)
    expect((await scene.new.get(id)).status).toBe('completed')
  })

  it('may be killed after any of its writes and run again', { timeout: 300_000 }, async () => {
    let killedAt = 0
    for (; ; killedAt++) {
      const scene = await setScene()
      const first = await scene.move(killedAt)
      if (first.report !== null) break
      await scene.pass(8_000)
      const second = await scene.move()
      expect(second.report?.stopped, `after ${killedAt} writes`).toBeNull()
      expect(await scene.wrongIn(), `after ${killedAt} writes`).toEqual([])
      await scene.end()
    }
    expect(killedAt).toBeGreaterThan(15)
  })

  it('may be killed again and again, each time a write further', async () => {
    const scene = await setScene()
    let kills = 0
    while ((await scene.move(kills + 1)).report === null) {
      kills++
      await scene.pass(1_000)
    }
    expect(kills).toBeGreaterThan(5)
    expect(await scene.wrongIn()).toEqual([])
  })
})

/** What is wrong after a move with this bug that was killed after some of its writes and run again. */
const killedSomewhere = async (bug: Bug): Promise<string[]> => {
  for (let killedAt = 3; killedAt < 25; killedAt++) {
    const scene = await setScene()
    if ((await scene.move(killedAt, bug)).report === null) {
      await scene.pass(8_000)
      await scene.move(undefined, bug)
    }
    const wrong = await scene.wrongIn()
    if (wrong.length > 0) return wrong
  }
  return []
}

describe('a planted bug is noticed:', () => {
  it('a copy that is not taken back runs on both sides', async () => {
    const scene = await setScene()
    await scene.move(undefined, 'no-take-back')
    expect((await scene.wrongIn()).join('\n')).toMatch(/fences|ended 2 times|has not left/)
  })

  it('a copy that can be claimed before the task has left runs on both sides', { timeout: 120_000 }, async () => {
    expect((await killedSomewhere('open-copies')).join('\n')).toMatch(/fences|ended 2 times|has not left/)
  })

  it('a copy that is never opened does not run', async () => {
    const scene = await setScene()
    await scene.move(undefined, 'never-open')
    expect((await scene.wrongIn()).join('\n')).toMatch('is archived')
  })
})

describe('no harm is done by', () => {
  it('a new store that works before the tasks have left', { timeout: 120_000 }, async () => {
    expect(await killedSomewhere('resume-early')).toEqual([])
  })

  it('a task that left and whose copy is missing: it is copied again', { timeout: 120_000 }, async () => {
    expect(await killedSomewhere('archive-first')).toEqual([])
  })

  it('a task that leaves long after its mover gave up waiting for the answer', async () => {
    const scene = await setScene()
    await scene.moveWithLateDepartures()
    expect(await scene.wrongIn()).toEqual([])
  })
})
