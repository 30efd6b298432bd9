/**
 * Moves one store to another, and dies by its own hand at a point that it was given: before or after the n-th call of one
 * kind. Between the first copies and their leaving somebody else claims some of the tasks.
 */
import { connect } from '../../../src/connect.ts'
import { hasDeparted } from '../../../src/core/transfer/transfer.ts'
import { silentLogger } from '../../../src/runtime/telemetry/logger.ts'
import type { Inserted, Insertion, Store } from '../../../src/store/store.ts'
import { openAt } from '../address.ts'
import { planOf, say } from './child.ts'

export interface Death {
  readonly side: 'from' | 'to'
  /** As lossy-store names it; of a document also its name: `documents.put pause/default`. */
  readonly call: string
  readonly when: 'before' | 'after'
  readonly nth?: number
}

export interface MoverPlan {
  readonly from: string
  readonly to: string
  readonly dies?: Death
  readonly plant?: 'archive-first' | 'no-take-back' | 'never-open'
}

const { from, to, dies, plant } = planOf<MoverPlan>()

/** The line is out before the process is gone: a pipe keeps what was written to it. */
const die = (): Promise<never> => {
  say('dies')
  process.kill(process.pid, 'SIGKILL')
  return new Promise(() => {})
}

type Call = (...args: never[]) => Promise<unknown>

const mortal = (side: Death['side'], store: Store): Store => {
  if (dies?.side !== side) return store
  let met = 0
  const watched =
    (name: string, call: Call): Call =>
    async (...args) => {
      const told = name.startsWith('documents.') ? `${name} ${String(args[0])}` : name
      const isIt = told === dies.call && ++met === (dies.nth ?? 1)
      if (isIt && dies.when === 'before') await die()
      const reply = await call(...args)
      if (isIt) await die()
      return reply
    }
  const family = (name: 'documents' | 'detachedKeys'): object =>
    Object.fromEntries(
      Object.entries(store[name]!).map(([one, call]) => [one, watched(`${name}.${one}`, call as Call)]),
    )
  const [documents, detachedKeys] = [family('documents'), family('detachedKeys')]
  return new Proxy(store, {
    get(target, name) {
      if (name === 'documents') return documents
      if (name === 'detachedKeys') return detachedKeys
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? watched(String(name), value.bind(target) as Call) : value
    },
  })
}

/** Its claims lapse, and somebody else runs them: in the old store, or where they have gone by then. */
const robbed = (store: Store): Store => {
  let isDone = false
  return withCommit(store, async (changes) => {
    if (!isDone && changes.some(({ entry }) => entry.move === 'depart')) {
      isDone = true
      const want = { queue: 'default', types: null, workerId: 'thief', op: `thief-${process.pid}`, leaseTtl: 1_000 }
      const { leased } = await store.claim({ ...want, limit: 5, dueLimit: 0, now: null })
      say('stole', { tasks: leased.length })
    }
    return store.commit(changes)
  })
}

const withCommit = (store: Store, commit: Store['commit']): Store => withMethods(store, { commit })

const withMethods = (store: Store, methods: Partial<Store>): Store =>
  new Proxy(store, {
    get(target, name) {
      if (Object.hasOwn(methods, name)) return methods[name as keyof Store]
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })

let source = robbed(mortal('from', await openAt(from, false)))
let target = mortal('to', await openAt(to, false))

if (plant === 'no-take-back')
  target = withMethods(target, { remove: async (removals) => removals.map(() => 'removed' as const) })
if (plant === 'never-open') {
  const honest = target
  target = withCommit(target, async (changes) => {
    const others = changes.filter(({ entry }) => entry.move !== 'arrive')
    if (others.length > 0) await honest.commit(others)
    return changes.map(() => 'written' as const)
  })
}
if (plant === 'archive-first') {
  const waiting: Insertion[] = []
  const [honest, inner] = [target, source]
  target = withMethods(target, {
    insert: async (insertions) => {
      const originals = await inner.get(insertions.map(({ task }) => task.id))
      if (originals.some((task) => task !== null && hasDeparted(task))) return honest.insert(insertions, { now: null })
      waiting.push(...insertions)
      return insertions.map((): Inserted => ({ outcome: 'created' }))
    },
  })
  source = withCommit(source, async (changes) => {
    const committed = await inner.commit(changes)
    const late = waiting.splice(0).filter((_, i) => committed[i] === 'written')
    if (late.length > 0) await honest.insert(late, { now: null })
    return committed
  })
}

const options = { logger: silentLogger, name: 'mover' }
const [one, other] = [await connect(source, options), await connect(target, options)]
const begun = performance.now()
const report = await one.moveTo(other, { live: true })
say('moved', { ...report, took: performance.now() - begun })
await Promise.all([one.close(), other.close()])
