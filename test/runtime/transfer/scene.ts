/**
 * Two stores with live workers on both, a schedule, keys and pauses, and a mover that dies after a given number of writes.
 * What ran where is noted by the handlers themselves; every sentence that `wrongIn` returns is a broken promise.
 */

import { hasDeparted } from '../../../src/core/transfer/transfer.ts'
import { type Client, connect, HoldfastError, type MoveReport, silentLogger } from '../../../src/index.ts'
import { openMemory } from '../../../src/store/memory/store.ts'
import type { Inserted, Insertion, Store } from '../../../src/store/store.ts'
import { FakeClock } from '../../../src/testing/fake-clock.ts'
import { lossy } from '../../../src/testing/lossy-store.ts'
import { keptOpen, passing } from '../setup.ts'

export type Bug = 'archive-first' | 'no-take-back' | 'resume-early' | 'open-copies' | 'never-open'

interface Run {
  readonly side: 'from' | 'to'
  readonly what: 'start' | 'end'
  readonly id: string
  readonly fence: number
}

const WRITES = /^(insert|commit|remove|documents\.(put|delete)|detachedKeys\.put)$/
const TASKS = 70
const EVERYTHING = ['pending', 'running', 'completed', 'failed', 'cancelled', 'expired', 'archived']

export class Scene {
  readonly clock = new FakeClock()
  readonly runs: Run[] = []
  readonly submitted: string[] = []
  readonly keys = new Map<string, string>()
  readonly from: Store = openMemory({ wall: () => this.clock.wall() })
  readonly to: Store = openMemory({ wall: () => this.clock.wall() })
  old!: Client
  new!: Client
  /** Claims a task by hand between its copy and its leaving, once. */
  thief = true
  readonly #clients: Client[] = []

  async set(): Promise<void> {
    this.old = await this.#client(this.from)
    this.new = await this.#client(this.to)
    for (let n = 0; n < TASKS; n++) await this.#submit(n)
    const { id } = await this.old.submit('work', 'pruned', { idempotencyKey: 'orphan' })
    await this.old.cancel(id)
    await this.old.prune({ olderThan: 0, status: 'cancelled' })
    await this.old.submit('work', 'frozen', { queue: 'frozen' })
    await this.old.queue('frozen').pause({ reason: 'on purpose' })
    await this.new.queue('mail').pause({ reason: 'on purpose, too' })
    await this.old.schedules.create({
      id: 'tick',
      type: 'tick',
      input: null,
      every: '1s',
      catchUp: 'all',
      overlap: 'allow',
    })
    this.#work('from', this.old, 2)
    this.#work('to', this.new, 3)
    await this.pass(700)
  }

  async #submit(n: number): Promise<void> {
    const key = n % 3 === 0 ? `key-${n}` : undefined
    const { id } = await this.old.submit('work', n, {
      queue: n % 5 === 0 ? 'mail' : 'default',
      retryPolicy: { base: '2s', multiplier: 1, max: '2s', jitter: 'none' },
      ...(key === undefined ? null : { idempotencyKey: key }),
      ...(n % 10 === 9 ? { delay: '20s' as const } : null),
    })
    this.submitted.push(id)
    if (key !== undefined) this.keys.set(key, id)
  }

  #work(side: Run['side'], client: Client, concurrency: number): void {
    client
      .worker({ id: side, concurrency, queues: ['default', 'mail', 'frozen'], leaseTtl: '2s' })
      .handle('work', async (input, ctx) => {
        const run = { side, id: ctx.task.id, fence: ctx.fence }
        this.runs.push({ ...run, what: 'start' })
        await new Promise<void>((done) => this.clock.after(600, done))
        if (ctx.fence === 1 && Number(input) % 4 === 1) throw new Error('not at once')
        this.runs.push({ ...run, what: 'end' })
        return side
      })
      .handle('tick', (_, ctx) => void this.runs.push({ side, what: 'end', id: ctx.task.id, fence: ctx.fence }))
      .start()
  }

  async #client(store: Store): Promise<Client> {
    const { clock } = this
    const client = await connect(keptOpen(store), { clock, random: clock.random, logger: silentLogger, name: 'scene' })
    this.#clients.push(client)
    return client
  }

  pass(milliseconds: number): Promise<void> {
    return this.clock.advance(milliseconds)
  }

  passing<T>(promise: Promise<T>): Promise<T> {
    return passing(this.clock, promise, 100)
  }

  /** A mover that is gone after `writes` writes: its report, or null when it died; and how many writes there were. */
  async move(writes = Number.POSITIVE_INFINITY, bug?: Bug): Promise<{ report: MoveReport | null; writes: number }> {
    const { clock } = this
    const dead = Promise.withResolvers<null>()
    let done = 0
    const mortal = (store: Store): Store =>
      lossy(store, (call) => {
        if (!WRITES.test(call)) return done > writes ? 'silence' : 'pass'
        if (++done <= writes) return 'pass'
        dead.resolve(null)
        return 'silence'
      })
    const options = { clock, random: clock.random, logger: silentLogger, name: 'mover' }
    const [from, to] = this.#sides(mortal(keptOpen(this.from)), mortal(keptOpen(this.to)), bug)
    const source = await connect(from, options)
    const target = await connect(to, options)
    const report = await this.passing(Promise.race([source.moveTo(target, { live: true }), dead.promise]))
    return { report, writes: done }
  }

  /** False: there were fewer writes. */
  async moveWithLostReply(n: number): Promise<boolean> {
    const { clock } = this
    let done = 0
    const lossyAt = (store: Store): Store =>
      lossy(keptOpen(store), (call) => (WRITES.test(call) && ++done === n ? 'lose-reply' : 'pass'))
    const options = { clock, random: clock.random, logger: silentLogger, name: 'mover' }
    const [source, target] = [await connect(lossyAt(this.from), options), await connect(lossyAt(this.to), options)]
    await this.passing(source.moveTo(target, { live: true }))
    return done >= n
  }

  /** Each departure is carried out some seconds after the mover was told that there is no answer. */
  async moveWithLateDepartures(): Promise<void> {
    const { clock } = this
    let isLate = 3
    const late = withMethods(keptOpen(this.from), {
      commit: async (changes) => {
        if (!changes.some(({ entry }) => entry.move === 'depart') || isLate-- <= 0) return this.from.commit(changes)
        clock.after(4_000, () => void this.from.commit(changes))
        throw new HoldfastError('STORE_UNAVAILABLE', 'no answer')
      },
    })
    const options = { clock, random: clock.random, logger: silentLogger, name: 'mover' }
    const [source, target] = [await connect(late, options), await connect(keptOpen(this.to), options)]
    await this.passing(source.moveTo(target, { live: true }))
  }

  #sides(mortalFrom: Store, mortalTo: Store, bug: Bug | undefined): [Store, Store] {
    const copies: Parameters<Store['insert']>[] = []
    const from = withMethods(mortalFrom, {
      commit: async (changes) => {
        const leaving = changes.find(({ entry }) => entry.move === 'depart' && entry.to === 'archived')
        if (leaving !== undefined && leaving.from === 'pending' && this.thief) {
          this.thief = false
          await this.#steal(leaving.id)
        }
        const committed = await mortalFrom.commit(changes)
        for (const [insertions] of copies.splice(0))
          await to.insert(
            insertions.filter((_, i) => committed[i] === 'written'),
            { now: null },
          )
        return committed
      },
    })
    const to = withMethods(mortalTo, {
      ...(bug === 'no-take-back' ? { remove: async (removals) => removals.map(() => 'removed' as const) } : null),
      ...(bug === 'never-open'
        ? {
            commit: async (changes) => {
              const others = changes.filter(({ entry }) => entry.move !== 'arrive')
              if (others.length > 0) await mortalTo.commit(others)
              return changes.map(() => 'written' as const)
            },
          }
        : null),
      ...(bug === 'resume-early' || bug === 'open-copies'
        ? {
            insert: async (insertions, options) => {
              const copies = bug === 'open-copies' ? insertions.map(opened) : insertions
              const inserted = await mortalTo.insert(copies, options)
              await this.new.queue('default').resume({ force: true })
              return inserted
            },
          }
        : null),
    })
    if (bug !== 'archive-first') return [from, to]
    // The copy is written when the task has left: what dies in between takes it along.
    const late = withMethods(to, {
      insert: async (...args) => {
        const ids = args[0].map(({ task }) => task.id)
        if ((await this.from.get(ids)).some((task) => task !== null && hasDeparted(task))) return to.insert(...args)
        copies.push(args)
        return args[0].map((): Inserted => ({ outcome: 'created' }))
      },
    })
    return [from, late]
  }

  /** A caller who drives tasks himself, on the old store. */
  async #steal(id: string): Promise<void> {
    const lease = await this.old.claim(id, { workerId: 'thief', leaseTtl: '10s' }).catch(() => null)
    if (lease === null) return
    const run = { side: 'from' as const, id, fence: lease.task.attempts }
    this.runs.push({ ...run, what: 'start' })
    this.clock.after(900, () => {
      this.runs.push({ ...run, what: 'end' })
      void lease.complete('stolen')
    })
  }

  async end(): Promise<void> {
    for (const client of this.#clients) await passing(this.clock, client.close(), 500)
    await this.from.close()
    await this.to.close()
  }

  /** After the move and a minute more, with the queue resumed that was paused on purpose. */
  async wrongIn(): Promise<string[]> {
    const wrong: string[] = []
    const paused = new Set((await this.to.documents.list('pause/')).map(({ name }) => name))
    for (const name of ['pause/mail', 'pause/frozen']) if (!paused.delete(name)) wrong.push(`${name} is not there`)
    for (const name of paused) wrong.push(`${name} was not released`)
    await this.new.queue('mail').resume()
    await this.pass(60_000)
    for (const id of this.submitted) wrong.push(...(await this.#wrongWith(id)))
    for (const [key, id] of this.keys) {
      const again = await this.new.submit('work', Number(key.slice(4)), { idempotencyKey: key })
      if (!again.deduplicated || again.id !== id) wrong.push(`key ${key} does not stand for task ${id} any more`)
    }
    if (!(await this.new.submit('work', 'pruned', { idempotencyKey: 'orphan' })).deduplicated)
      wrong.push('the key that had outlived its task is lost')
    wrong.push(...(await this.#wrongSlots()))
    for (const name of ['move/in', 'move/out'])
      for (const store of [this.from, this.to]) if (await store.documents.get(name)) wrong.push(`${name} is left`)
    return wrong
  }

  async #wrongWith(id: string): Promise<string[]> {
    const wrong: string[] = []
    const runs = this.runs.filter((run) => run.id === id)
    const fences = runs.filter(({ what }) => what === 'start').map(({ fence }) => fence)
    if (fences.some((fence, i) => i > 0 && fence <= fences[i - 1]!)) wrong.push(`task ${id}: fences ${fences}`)
    const ends = runs.filter(({ what }) => what === 'end')
    if (ends.length !== 1) wrong.push(`task ${id} ended ${ends.length} times: ${JSON.stringify(runs)}`)
    const [[here], [there]] = await Promise.all([this.from.get([id]), this.to.get([id])])
    if (there?.status !== 'completed') wrong.push(`task ${id} is ${there?.status ?? 'not there'}`)
    if (here?.history.at(-1)?.move !== 'depart') wrong.push(`task ${id} has not left: ${here?.status}`)
    return wrong
  }

  /** One task for every slot from the first to the last, over both stores. */
  async #wrongSlots(): Promise<string[]> {
    const slots = new Map<number, Set<string>>()
    for (const client of [this.old, this.new]) {
      for (const status of EVERYTHING) {
        const { tasks } = await client.list({ type: 'tick', status, limit: 1_000 })
        for (const { id, idempotencyKey } of tasks) {
          const slot = Date.parse(idempotencyKey!.slice(-24))
          slots.set(slot, (slots.get(slot) ?? new Set()).add(id))
        }
      }
    }
    const instants = [...slots.keys()].sort((a, b) => a - b)
    const wrong = [...slots].filter(([, ids]) => ids.size > 1).map(([slot]) => `slot ${slot} has several tasks`)
    if (instants.length < 60) wrong.push(`only ${instants.length} slots`)
    for (const [i, slot] of instants.entries())
      if (i > 0 && slot - instants[i - 1]! !== 1_000) wrong.push(`no task for the slots before ${slot}`)
    const ran = this.runs.filter(({ id }) => [...slots.values()].some((ids) => ids.has(id)))
    if (new Set(ran.map(({ id }) => id)).size !== ran.length) wrong.push('a slot ran twice')
    return wrong
  }
}

/** As if the copy could be claimed at once. */
const opened = (insertion: Insertion): Insertion => {
  const { task } = insertion
  if (task.archivedFrom !== 'pending') return insertion
  const before = { revision: task.revision - 1, history: task.history.slice(0, -1) }
  return { ...insertion, task: { ...task, ...before, status: 'pending', archivedFrom: null } }
}

const withMethods = (store: Store, methods: Partial<Store>): Store =>
  new Proxy(store, {
    get: (target, name) => {
      if (Object.hasOwn(methods, name)) return methods[name as keyof Store]
      const value = Reflect.get(target, name, target) as unknown
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
