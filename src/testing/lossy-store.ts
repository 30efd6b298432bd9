/** A store behind a faulty network: replies lost after the write, requests that never arrive, silence. */
import { HoldfastError } from '../core/errors.ts'
import type { DetachedKeys, Documents, Store } from '../store/store.ts'

/**
 * - `pass`: no fault.
 * - `lose-reply`: the call takes effect, and the caller gets STORE_UNAVAILABLE.
 * - `drop-request`: the call never arrives, and the caller gets the same error.
 * - `silence`: the call never arrives and is never answered, as from a process that has vanished.
 */
export type Fate = 'pass' | 'lose-reply' | 'drop-request' | 'silence'

/** The name of a call to a store. */
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
  | `detachedKeys.${keyof DetachedKeys}`

/** Called once per call. */
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

/** The same store, with the outcome of every call decided by `plan`. Wake-ups, the store's keeper and close are not affected. */
export const lossy = (store: Store, plan: LossPlan): Store => {
  const documents = Object.fromEntries(
    (['get', 'put', 'list', 'delete'] as const).map((name) => [
      name,
      behindWire(`documents.${name}`, store.documents[name] as Call, plan),
    ]),
  )
  const keys = store.detachedKeys
  const detachedKeys = keys && {
    list: behindWire('detachedKeys.list', keys.list.bind(keys) as Call, plan),
    put: behindWire('detachedKeys.put', keys.put.bind(keys) as Call, plan),
  }
  return new Proxy(store, {
    get(target, name) {
      if (name === 'documents') return documents
      if (name === 'detachedKeys') return detachedKeys
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

/** A plan in which the first call of this kind (for which `when` holds) has this outcome, and all others pass. */
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
