/** Many workers, virtual time, seeded faults; then everything heals, and the histories must tell a possible story. */
import { describe, expect, it } from 'vitest'
import {
  type Client,
  connect,
  type Handler,
  isHoldfastError,
  PermanentError,
  RescheduleError,
  silentLogger,
  type Task,
} from '../../src/index.ts'
import { openMemory } from '../../src/store/memory/store.ts'
import type { Change, Store } from '../../src/store/store.ts'
import { checkHistory, type Start } from '../../src/testing/check-history.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { type LossPlan, lossy } from '../../src/testing/lossy-store.ts'
import { keptOpen } from './setup.ts'

const SEEDS = 50
const TASKS = 40
const FAULTY_FOR = 60_000
const HEALED_FOR = 600_000
const EVERY_STATUS = ['pending', 'running', 'completed', 'failed', 'cancelled', 'expired', 'archived']

interface Node {
  readonly client: Client
  /** Its process is gone: nothing it does arrives any more. */
  vanish(): void
  /** For so long nothing reaches the store from it; its handlers go on. */
  cutOff(milliseconds: number): void
  heal(): void
}

const simulate = async (
  seed: number,
  bug: (store: Store) => Store = (store) => store,
): Promise<{ violations: string[]; starts: number; faults: number; tasks: Task[] }> => {
  const clock = new FakeClock({ seed })
  const { random } = clock
  const oneOf = <T>(...choices: readonly T[]): T => choices[Math.floor(random() * choices.length)]!
  const store = openMemory({ wall: () => clock.wall() })
  const starts: Start[] = []
  const submitted: string[] = []
  const unclear: string[] = []
  let faults = 0

  const handler: Handler = async (input, ctx) => {
    starts.push({ id: ctx.task.id, fence: ctx.fence })
    const dice = random()
    if (input === 'poison') throw new Error('always')
    if (dice < 0.4) return 'at once'
    await new Promise<void>((done) => {
      const cancel = clock.after(random() * 8_000, done)
      ctx.signal.addEventListener('abort', () => {
        if (dice < 0.9) cancel()
        if (dice < 0.9) done()
      })
    })
    if (dice < 0.6) throw new Error('no luck')
    if (dice < 0.65) throw new PermanentError('never')
    if (dice < 0.75) throw new RescheduleError({ seconds: Math.floor(random() * 10) })
    if (dice > 0.95 && ctx.attempt < 3) await new Promise(() => {})
    return 'in the end'
  }

  const node = async (name: string): Promise<Node> => {
    let state: 'faulty' | 'healthy' | 'gone' = 'faulty'
    let cutUntil = 0
    const plan: LossPlan = (call) => {
      if (state === 'gone') return 'silence'
      if (state === 'faulty' && clock.mono() < cutUntil) return 'drop-request'
      if (state === 'healthy' || call === 'now' || random() > 0.08) return 'pass'
      faults++
      return oneOf('lose-reply', 'lose-reply', 'drop-request')
    }
    const client = await connect(lossy(bug(keptOpen(store)), plan), { clock, random, logger: silentLogger, name })
    client.worker({ concurrency: 3, leaseTtl: '3s', stopTimeout: '1s', id: name }).handle('work', handler).start()
    return {
      client,
      vanish() {
        state = 'gone'
      },
      cutOff(span) {
        cutUntil = clock.mono() + span
      },
      heal() {
        if (state !== 'gone') state = 'healthy'
      },
    }
  }

  const unlucky: LossPlan = (call) =>
    call === 'now' ? 'pass' : oneOf('pass', 'pass', 'pass', 'lose-reply', 'drop-request')
  const operator = await connect(lossy(bug(keptOpen(store)), unlucky), {
    clock,
    random,
    logger: silentLogger,
    name: 'operator',
  })
  const nodes = [await node('w1'), await node('w2'), await node('w3')]
  let born = 3

  const submitOne = async (i: number): Promise<void> => {
    const id = `01900000-0000-7000-8000-${(seed * 1_000 + i).toString(16).padStart(12, '0')}`
    const options = {
      id,
      timeout: '5s',
      maxRetries: oneOf(1, 3, 10),
      ...(random() < 0.2 ? { ttl: '30s' } : null),
      ...(random() < 0.2 ? { delay: '5s' } : null),
      ...(random() < 0.3 ? { idempotencyKey: `key ${id}` } : null),
    }
    try {
      submitted.push((await operator.submit('work', random() < 0.1 ? 'poison' : i, options)).id)
    } catch (error) {
      if (!isHoldfastError(error, 'STORE_UNAVAILABLE')) throw error
      unclear.push(id)
    }
  }
  const meddle = async (): Promise<void> => {
    const id = oneOf(...submitted)
    if (id === undefined) return
    await oneOf(
      () => operator.cancel(id),
      () => operator.retry(id),
      () => operator.archive(id),
      () => operator.unarchive(id),
    )().catch((error: unknown) => {
      if (!isHoldfastError(error)) throw error
    })
  }

  const doings: Promise<void>[] = []
  const end = clock.wall() + FAULTY_FOR
  for (let i = 0; clock.wall() < end; ) {
    if (i < TASKS) doings.push(submitOne(i++))
    if (random() < 0.2) doings.push(meddle())
    if (random() < 0.05) {
      const at = Math.floor(random() * nodes.length)
      nodes[at]!.vanish()
      nodes[at] = await node(`w${++born}`)
    }
    if (random() < 0.1) oneOf(...nodes).cutOff(random() * 15_000)
    await clock.advance(random() * 2_000)
  }

  for (const one of nodes) one.heal()
  const healthy = await connect(keptOpen(store), { clock, random, logger: silentLogger, name: 'healthy' })
  healthy
    .worker({ leaseTtl: '3s', id: 'healer' })
    .handle('work', (input, ctx) => {
      starts.push({ id: ctx.task.id, fence: ctx.fence })
      if (input === 'poison') throw new Error('always')
      return 'healed'
    })
    .start()
  const left = async () => (await healthy.count({ status: ['pending', 'running'] })).count
  let isOver = false
  const over = Promise.all(doings).then(() => (isOver = true))
  for (let healed = 0; healed < HEALED_FOR && (!isOver || (await left()) > 0); healed += 5_000)
    await clock.advance(5_000)
  await over

  const { tasks } = await healthy.list({ status: EVERY_STATUS, limit: 1_000 })
  const whole = await Promise.all(tasks.map(({ id }) => healthy.get(id)))
  return {
    violations: checkHistory({ tasks: whole, submitted, unclear, starts, drained: true }),
    starts: starts.length,
    faults,
    tasks: whole,
  }
}

describe('simulation', () => {
  it(`[Q01][Q03][Q04][R04][AA2] ${SEEDS} seeds of lost replies, vanished workers and bad handlers leave no impossible history`, async () => {
    let [runs, faults, tasks] = [0, 0, 0]
    for (let seed = 1; seed <= SEEDS; seed++) {
      const result = await simulate(seed)
      expect(result.violations, `seed ${seed}`).toEqual([])
      runs += result.starts
      faults += result.faults
      tasks += result.tasks.length
    }
    // A simulation in which nothing goes wrong proves nothing.
    expect(faults / SEEDS).toBeGreaterThan(20)
    expect(runs).toBeGreaterThan(tasks)
  }, 120_000)

  const caught = async (bug: (store: Store) => Store): Promise<string[]> => {
    for (let seed = 1; seed <= 20; seed++) {
      const { violations } = await simulate(seed, bug)
      if (violations.length > 0) return violations
    }
    return []
  }

  /** Every method of the store but one. */
  const withMethod = <Name extends keyof Store>(
    store: Store,
    name: Name,
    method: (target: Store) => Store[Name],
  ): Store =>
    new Proxy(store, {
      get(target, wanted) {
        if (wanted === name) return method(target)
        const value: unknown = Reflect.get(target, wanted, target)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })

  it('catches a store that ignores revisions', async () => {
    const blind = (store: Store): Store =>
      withMethod(store, 'commit', (target) => async (changes: readonly Change[]) => {
        const current = await target.get(changes.map(({ id }) => id))
        return target.commit(
          changes.map((change, i) => ({ ...change, revision: current[i]?.revision ?? change.revision })),
        )
      })
    expect(await caught(blind)).not.toEqual([])
  }, 60_000)

  it('catches a commit that ignores under whose lease a run ends', async () => {
    const trusting = (store: Store): Store =>
      withMethod(store, 'commit', (target) => async (changes: readonly Change[]) => {
        const current = await target.get(changes.map(({ id }) => id))
        return target.commit(
          changes.map((change, i) =>
            change.from === 'running' && current[i]?.status === 'running'
              ? { ...change, revision: current[i].revision }
              : change,
          ),
        )
      })
    expect(await caught(trusting)).not.toEqual([])
  }, 60_000)

  it('catches a store that hands out what others hold', async () => {
    const generous = (store: Store): Store =>
      withMethod(store, 'claim', (target) => async (want) => {
        const look = await target.claim(want)
        // Hands out, beside what it leased, what others hold.
        const held = (
          await target.list({ views: [{ status: 'running' }] }, { order: 'oldest', limit: 3, now: null })
        ).tasks.filter(({ lease }) => lease?.workerId !== want.workerId)
        return { ...look, leased: [...look.leased, ...held.slice(0, Math.max(0, want.limit - look.leased.length))] }
      })
    expect(await caught(generous)).not.toEqual([])
  }, 60_000)

  it('catches a store that forgets one task in a hundred', async () => {
    let n = 0
    const leaky = (store: Store): Store =>
      withMethod(
        store,
        'insert',
        (target) => async (insertions, options) =>
          ++n % 100 === 0
            ? insertions.map(() => ({ outcome: 'created' as const }))
            : target.insert(insertions, options),
      )
    expect((await caught(leaky)).join()).toMatch(/was submitted and is lost/)
  }, 60_000)
})
