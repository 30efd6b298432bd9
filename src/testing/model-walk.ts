/** A seeded walk: makes the same random calls to a store and to the model, which must agree after every step. */
import assert from 'node:assert/strict'
import type { Instant, TaskRecord } from '../core/task.ts'
import type { Store } from '../store/store.ts'
import { type Command, nextCommand } from './commands.ts'
import { Model, plain } from './model.ts'
import { Random } from './random.ts'

/** How long a walk is, and from which seed. */
export interface WalkOptions {
  /** The same seed makes the same walk. */
  readonly seed: number
  /** How many commands. */
  readonly steps: number
  /** Also amend pending tasks. Default true. */
  readonly amends?: boolean
}

/** How often each move was written, by name, so that the caller can check the coverage. */
export type Walked = ReadonlyMap<string, number>

/** Throws at the first difference, with everything needed to reproduce it. The store must be empty. */
export const walk = async (store: Store, { seed, steps, amends = true }: WalkOptions): Promise<Walked> => {
  const walker = new Walker(store, new Random(seed), amends)
  for (let step = 1; step <= steps; step++) {
    const command = walker.choose(step)
    try {
      await walker.take(command)
      if (step === steps) await walker.compareAll()
    } catch (difference) {
      const what = difference instanceof Error ? difference.message : String(difference)
      throw new Error(`model walk, seed ${seed}, step ${step}, ${described(command)}: ${what}`, { cause: difference })
    }
  }
  return walker.walked
}

const described = (command: Command): string => JSON.stringify(command).slice(0, 3_000)

/** How many records from earlier reads are remembered. */
const MEMORY = 120
const TIME_BETWEEN_STEPS: readonly [number, ...number[]] = [0, 0, 1, 5, 20, 80, 300]

class Walker {
  readonly walked = new Map<string, number>()
  readonly #store: Store
  readonly #random: Random
  readonly #amends: boolean
  readonly #model = new Model()
  #seen: TaskRecord[] = []
  /** In the far future, because a store sweeps expired keys by its own clock, which the model does not do. */
  #now: Instant = 4_000_000_000_000

  constructor(store: Store, random: Random, amends: boolean) {
    this.#store = store
    this.#random = random
    this.#amends = amends
  }

  choose(step: number): Command {
    this.#now += this.#random.pick(TIME_BETWEEN_STEPS)
    return nextCommand({
      random: this.#random,
      model: this.#model,
      seen: this.#seen,
      step,
      now: this.#now,
      amends: this.#amends,
    })
  }

  async take(command: Command): Promise<void> {
    const store = this.#store
    const model = this.#model
    switch (command.do) {
      case 'insert': {
        const { insertions, now } = command
        const inserted = await store.insert(insertions, { now })
        const expected = insertions.map((insertion) => model.insert(insertion, now))
        assert.deepEqual(inserted.map(plainTask), expected)
        return this.#compare(insertions.map(({ task }) => task.id))
      }
      case 'claim': {
        const look = await store.claim(command.want)
        model.look(command.want, look, store.capabilities.has('exact-order'))
        this.#remember([...look.due, ...look.leased])
        return this.#compare(look.leased.map(({ id }) => id))
      }
      case 'commit': {
        const { changes } = command
        const committed = await store.commit(changes)
        assert.deepEqual(
          committed,
          changes.map((change) => model.commit(change)),
        )
        for (const [i, { entry }] of changes.entries()) if (committed[i] === 'written') this.#count(entry.move)
        return this.#compare(changes.map(({ id }) => id))
      }
      case 'renew': {
        const { renewals, now } = command
        const renewed = await store.renew(renewals, now)
        assert.deepEqual(
          renewed,
          renewals.map((renewal) => model.renew(renewal, now)),
        )
        return this.#compare(renewals.map(({ id }) => id))
      }
      case 'remove': {
        const removed = await store.remove(command.removals)
        assert.deepEqual(
          removed,
          command.removals.map((removal) => model.remove(removal)),
        )
        return this.#compare(command.removals.map(({ id }) => id))
      }
      case 'find': {
        const found = await store.find(command.key)
        const key = model.keys.get(command.key)
        const expected = key === undefined ? null : { key, task: model.tasks.get(key.taskId) ?? null }
        return assert.deepEqual(found && plainTask(found), expected)
      }
      case 'list': {
        const { tasks } = await store.list(command.query, command.page)
        return assert.deepEqual(tasks.map(plain), model.list(command.query, command.page))
      }
      case 'count': {
        const { query, cap, now } = command
        return assert.equal((await store.count(query, { cap, now })).count, model.count(query, cap, now))
      }
    }
  }

  /** Compares every task, by get and by list, and every key. */
  async compareAll(): Promise<void> {
    const ids = [...this.#model.tasks.keys()]
    await this.#compare(ids)
    await this.take({ do: 'list', query: {}, page: { order: 'oldest', limit: ids.length + 1, now: this.#now } })
    await this.take({ do: 'count', query: {}, cap: ids.length + 1, now: this.#now })
    for (const key of this.#model.keys.keys()) await this.take({ do: 'find', key })
  }

  async #compare(ids: readonly string[]): Promise<void> {
    const found = await this.#store.get(ids)
    for (const [i, id] of ids.entries()) {
      const record = found[i] ?? null
      assert.deepEqual(record && plain(record), this.#model.tasks.get(id) ?? null, `task ${id} differs`)
    }
    this.#remember(found.filter((record) => record !== null))
  }

  #remember(records: readonly TaskRecord[]): void {
    this.#seen = [...this.#seen, ...records].slice(-MEMORY)
  }

  #count(move: string): void {
    this.walked.set(move, (this.walked.get(move) ?? 0) + 1)
  }
}

const plainTask = <T extends object>(answer: T): T =>
  'task' in answer && answer.task ? { ...answer, task: plain(answer.task as TaskRecord) } : answer
