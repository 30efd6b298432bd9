/** Bugs on purpose: stores that break one promise each, to show that the tests would notice. */
import { HoldfastError } from '../../src/core/errors.ts'
import { complete } from '../../src/core/machine.ts'
import type { Change } from '../../src/core/task.ts'
import type { Committed, HeldLease, Store } from '../../src/store/store.ts'

export type Plant =
  | 'none'
  | 'forget-keys'
  | 'early-ack'
  | 'ignore-full'
  | 'ignore-lease'
  | 'idle-keeper'
  | 'keeps-no-claims'
  | 'lying-keeper'
  | 'no-keeper'
  | 'hasty-reclaim'
  | 'complete-on-claim'
  | 'claim-twice'
  | 'cursor-first'
  | 'one-too-many'
  | 'counts-before-claiming'
  | 'unchecked-documents'
  /** No bug but a fault: replies are lost. */
  | 'lost-replies'

/** The store as it is but for some methods. Bound to the store itself, whose private fields a proxy would not have. */
export const withMethods = (store: Store, methods: Partial<Store>): Store =>
  new Proxy(store, {
    get: (target, name) => {
      if (Object.hasOwn(methods, name)) return methods[name as keyof Store]
      const value = Reflect.get(target, name, target) as unknown
      return typeof value === 'function' ? value.bind(target) : value
    },
  })

export const planted = (store: Store, plant: Plant): Store => {
  switch (plant) {
    case 'none':
      return store
    case 'ignore-lease':
      return withMethods(store, { commit: (changes) => commitAnyhow(store, changes) })
    case 'idle-keeper':
      return withMethods(store, { keeper: (options) => ({ ...store.keeper!(options), hold: () => {} }) })
    case 'keeps-no-claims':
      // Leases are kept only once the event loop has seen the reply.
      return withMethods(store, {
        keeper: (options) => {
          const { claiming: _, ...keeper } = store.keeper!(options)
          return keeper
        },
      })
    case 'lying-keeper':
      return withMethods(store, { keeper: lyingKeeper })
    case 'no-keeper':
      // The runtime then renews from the event loop.
      return withMethods(store, { keeper: undefined as never })
    case 'forget-keys':
      return withMethods(store, {
        insert: (insertions, options) =>
          store.insert(
            insertions.map(({ task }) => ({ task })),
            options,
          ),
      })
    case 'ignore-full':
      return withMethods(store, {
        insert: (insertions, options) =>
          store.insert(insertions, options).catch(() => insertions.map(() => ({ outcome: 'created' }))),
      })
    case 'early-ack':
      return earlyAck(store)
    case 'hasty-reclaim':
      return hastyReclaim(store)
    case 'complete-on-claim':
      return completeOnClaim(store)
    case 'claim-twice':
      return claimTwice(store)
    case 'cursor-first':
      return cursorFirst(store)
    case 'one-too-many':
      return oneTooMany(store)
    case 'counts-before-claiming':
      return countsBeforeClaiming(store)
    case 'unchecked-documents':
      return withMethods(store, { documents: uncheckedDocuments(store) })
    case 'lost-replies':
      return lostReplies(store)
  }
}

/** Renews nothing, and reports that everything is held. */
const lyingKeeper: NonNullable<Store['keeper']> = ({ report }) => {
  let held: readonly HeldLease[] = []
  return {
    hold: (leases) => {
      held = [...held, ...leases]
    },
    progress: () => {},
    reportNow: () => {
      const results = held.map(({ slot, token }) => ({ slot, token, renewed: 'held' as const }))
      report(results, Number(process.hrtime.bigint()) / 1e6)
    },
    close: () => {},
  }
}

/** Finishes by id: whoever has the task now, and whatever the revision is. */
const commitAnyhow = async (store: Store, changes: readonly Change[]): Promise<Committed[]> => {
  const committed = [...(await store.commit(changes))]
  for (const [i, change] of changes.entries()) {
    if (committed[i] !== 'conflict') continue
    const [now] = await store.get([change.id])
    if (!now) continue
    const { leaseExpiresAt: _, ...rest } = change
    const forced = {
      ...rest,
      revision: now.revision,
      from: now.status,
      entry: { ...change.entry, n: now.revision + 1 },
    }
    committed[i] = (await store.commit([forced]))[0]!
  }
  return committed
}

/** Takes leases that have not lapsed; seldom enough that tasks still come to an end. */
const hastyReclaim = (store: Store): Store => {
  let looks = 0
  return withMethods(store, {
    claim: async (want) => {
      const look = await store.claim(want)
      if (looks++ % 10 > 0) return look
      const running = (await store.list({ views: [{ status: 'running' }] }, { order: 'oldest', limit: 5, now: null }))
        .tasks
      const others = running.filter(({ lease }) => lease !== null && lease.workerId !== want.workerId)
      return {
        ...look,
        // Without a length, because on a busy machine contact seldom lasts for one.
        due: [...look.due, ...others.map((task) => ({ ...task, lease: { ...task.lease!, expiresAt: 0, ttl: 0 } }))],
      }
    },
    commit: (changes) => store.commit(changes.map(({ leaseExpiresAt: _, ...change }) => change)),
  })
}

/** At most once: the task is over before it has run. */
const completeOnClaim = (store: Store): Store =>
  withMethods(store, {
    claim: async (want) => {
      const look = await store.claim(want)
      const output = { text: 'null', encoding: 'json' as const }
      await store.commit(look.leased.map((task) => complete(task, { token: task.lease!.token }, output, Date.now())))
      return look
    },
  })

/** Two workers of one process get the same task, as when picking and leasing are two steps. */
const claimTwice = (store: Store): Store => {
  let last: Awaited<ReturnType<Store['claim']>>['leased'] = []
  return withMethods(store, {
    claim: async (want) => {
      const look = await store.claim(want)
      const again = look.leased.length === 0 ? last.slice(0, 1) : []
      if (look.leased.length > 0) last = look.leased
      else last = []
      return { ...look, leased: [...look.leased, ...again] }
    },
  })
}

/** Says yes while the tasks are still in memory: a kill within this time loses them. */
const earlyAck = (store: Store): Store =>
  withMethods(store, {
    insert: async (insertions, options) => {
      setTimeout(() => store.insert(insertions, options).catch(() => {}), 50)
      return insertions.map(() => ({ outcome: 'created' }))
    },
  })

/** A schedule's cursor moves when its tasks are about to be submitted, not when they are. */
const cursorFirst = (store: Store): Store => {
  const { documents } = store
  const put = (name: string, value: string, version: number): Promise<number | null> => {
    const record = JSON.parse(value) as { firing?: { slots: number[] } | null }
    const moved = record.firing ? { ...record, firing: null, cursor: record.firing.slots.at(-1) } : record
    return documents.put(name, JSON.stringify(moved), version)
  }
  return withMethods(store, { documents: { get: documents.get, list: documents.list, delete: documents.delete, put } })
}

/** Every limit is one higher than it is. */
const oneTooMany = (store: Store): Store =>
  withMethods(store, {
    claim: (want) => {
      if (want.limits === undefined) return store.claim(want)
      const { concurrency, turns, notAfter } = want.limits
      return store.claim({
        ...want,
        limits: {
          notAfter,
          concurrency: concurrency === null ? null : concurrency + 1,
          turns: turns && { ...turns, perGroup: turns.perGroup === null ? null : turns.perGroup + 1 },
        },
      })
    },
  })

/** What runs is counted in one step and leased in another, as without a lock. */
const countsBeforeClaiming = (store: Store): Store =>
  withMethods(store, {
    claim: async (want) => {
      if (want.limits === undefined) return store.claim(want)
      const page = { order: 'oldest', limit: 1_000, now: null } as const
      const { tasks } = await store.list({ queue: want.queue, views: [{ status: 'running' }] }, page)
      const { concurrency, turns } = want.limits
      const free = concurrency === null ? want.limit : Math.max(0, concurrency - tasks.length)
      const isFull = (group: string): boolean =>
        turns !== null &&
        turns.perGroup !== null &&
        tasks.filter((task) => task.group === group).length >= turns.perGroup
      const full = [...new Set(tasks.flatMap(({ group }) => group ?? []))].filter(isFull)
      const mostEach = Math.min(turns?.mostEach ?? 1, turns?.perGroup ?? Infinity)
      return store.claim({
        ...want,
        limit: Math.min(want.limit, free),
        limits: {
          notAfter: null,
          concurrency: null,
          turns: turns && { ...turns, perGroup: null, mostEach, without: [...turns.without, ...full] },
        },
      })
    },
  })

/** A document is written whatever version it has, so that two processes reserve the same permits. */
const uncheckedDocuments = ({ documents }: Store): Store['documents'] => ({
  get: documents.get,
  list: documents.list,
  delete: documents.delete,
  put: async (name, value, version) => {
    for (let against = version; ; against = (await documents.get(name))?.version ?? 0) {
      const written = await documents.put(name, value, against)
      if (written !== null) return written
    }
  },
})

const lostReplies = (store: Store): Store => {
  const losing =
    <Args extends unknown[], Result>(call: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      const result = await call(...args)
      if (Math.random() < 0.03) throw new HoldfastError('STORE_UNAVAILABLE', 'the reply was lost')
      return result
    }
  return withMethods(store, {
    claim: losing((want) => store.claim(want)),
    commit: losing((changes) => store.commit(changes)),
  })
}
