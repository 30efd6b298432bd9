/** A store behind a bad wire: replies that are lost after the write, requests that never arrive, silence. */
import { HoldfastError } from '../core/errors.ts'
import type { Documents, Orphans, Store } from '../store/store.ts'

/**
 * - `pass`: as if there were no wire.
 * - `lose-reply`: the call takes effect, and its caller is told STORE_UNAVAILABLE.
 * - `drop-request`: the call never arrives; its caller is told the same.
 * - `silence`: the call never arrives and never answers: what a process that has vanished looks like from outside.
 */
export type Fate = 'pass' | 'lose-reply' | 'drop-request' | 'silence'

export type StoreCall =
  | 'now'
  | 'insert'
  | 'claim'
  | 'commit'
  | 'renew'
  | 'remove'
  | 'get'
  | 'find'
  | 'list'
  | 'count'
  | `documents.${keyof Documents}`
  | `orphans.${keyof Orphans}`

/** Asked once per call. */
export type LossPlan = (call: StoreCall, args: readonly unknown[]) => Fate

type Call = (...args: unknown[]) => Promise<unknown>

const CALLS: ReadonlySet<unknown> = new Set<StoreCall>([
  'now',
  'insert',
  'claim',
  'commit',
  'renew',
  'remove',
  'get',
  'find',
  'list',
  'count',
])

/** The same store, with every call's fate decided by `plan`. Wake-ups, a keeper of its own and close pass untouched. */
export const lossy = (store: Store, plan: LossPlan): Store => {
  const documents = Object.fromEntries(
    (['get', 'put', 'list', 'delete'] as const).map((name) => [
      name,
      behindWire(`documents.${name}`, store.documents[name] as Call, plan),
    ]),
  )
  const orphans = {
    list: behindWire('orphans.list', store.orphans.list.bind(store.orphans) as Call, plan),
    put: behindWire('orphans.put', store.orphans.put.bind(store.orphans) as Call, plan),
  }
  return new Proxy(store, {
    get(target, name) {
      if (name === 'documents') return documents
      if (name === 'orphans') return orphans
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value
      const bound = value.bind(target) as Call
      return CALLS.has(name) ? behindWire(name as StoreCall, bound, plan) : bound
    },
  })
}

const behindWire =
  (name: StoreCall, call: Call, plan: LossPlan): Call =>
  async (...args) => {
    const fate = plan(name, args)
    if (fate === 'silence') return new Promise(() => {})
    if (fate === 'drop-request') throw unavailable(`${name}: the request was lost`)
    const reply = await call(...args)
    if (fate === 'lose-reply') throw unavailable(`${name}: the reply was lost`)
    return reply
  }

const unavailable = (message: string): HoldfastError => new HoldfastError('STORE_UNAVAILABLE', message)

/** A plan by which the first call of this kind (for which `when` holds) meets this fate, and all others pass. */
export const onceFor = (
  wanted: StoreCall,
  fate: Fate,
  when: (args: readonly unknown[]) => boolean = () => true,
): LossPlan & { readonly hits: number } => {
  let hits = 0
  const plan: LossPlan = (call, args) => {
    if (call !== wanted || hits > 0 || !when(args)) return 'pass'
    hits++
    return fate
  }
  return Object.defineProperty(plan, 'hits', { get: () => hits }) as LossPlan & { readonly hits: number }
}
