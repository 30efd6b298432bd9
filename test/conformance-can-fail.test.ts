/** A suite that cannot fail proves nothing: each of these stores has one fault, and the case that names it must turn red. */
import { describe, expect, test } from 'vitest'
import * as machine from '../src/core/machine.ts'
import { matches } from '../src/store/matching.ts'
import { openMemory } from '../src/store/memory/store.ts'
import { countQueues } from '../src/store/queue-counts.ts'
import type { Committed, DetachedKeys, Documents, Store, TaskRecord } from '../src/store/store.ts'
import { conformanceCases } from '../src/testing/conformance/cases.ts'
import { walk } from '../src/testing/model-walk.ts'

interface Fault {
  readonly caughtBy: string
  /** Whether the model walk meets it too. */
  readonly walk?: true
  faulty(store: Store): Partial<Store>
}

const withFault = (store: Store, overrides: Partial<Store>): Store =>
  new Proxy(store, {
    get: (target, name) => {
      const value = Reflect.get(name in overrides ? overrides : target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })

const changeLeased =
  (change: (leased: readonly TaskRecord[]) => readonly TaskRecord[]) =>
  (store: Store): Partial<Store> => ({
    claim: async (want) => {
      const look = await store.claim(want)
      return { ...look, leased: change(look.leased) }
    },
  })

const changeRead =
  (change: (record: TaskRecord) => TaskRecord) =>
  (store: Store): Partial<Store> => ({
    get: async (ids) => (await store.get(ids)).map((record) => record && change(record)),
  })

const changeDocuments =
  (change: (documents: Documents) => Partial<Documents>) =>
  (store: Store): Partial<Store> => ({ documents: { ...store.documents, ...change(store.documents) } })

const changeDetachedKeys =
  (change: (keys: DetachedKeys) => Partial<DetachedKeys>) =>
  (store: Store): Partial<Store> => ({ detachedKeys: { ...store.detachedKeys!, ...change(store.detachedKeys!) } })

const FAULTS: Readonly<Record<string, Fault>> = {
  'ignores revisions': {
    caughtBy: 'a change computed from an older revision is a conflict and writes nothing',
    walk: true,
    faulty: (store) => ({
      commit: async (changes) => {
        const written: Committed[] = []
        for (const change of changes) {
          const [task] = await store.get([change.id])
          written.push(...(await store.commit([{ ...change, revision: task?.revision ?? change.revision }])))
        }
        return written
      },
    }),
  },
  'writes a batch wholly or not at all': {
    caughtBy: 'each change of a batch is written or refused by itself, in the order given',
    walk: true,
    faulty: (store) => ({
      commit: async (changes) => {
        const found = await store.get(changes.map(({ id }) => id))
        const sound = changes.every(({ revision }, i) => found[i]?.revision === revision)
        return sound ? store.commit(changes) : changes.map(() => 'conflict' as const)
      },
    }),
  },
  'takes a lapsed lease without comparing its end': {
    caughtBy: 'a renewal between the look and the taking of a lapsed lease wins',
    walk: true,
    faulty: (store) => ({
      commit: (changes) => store.commit(changes.map(({ leaseExpiresAt: _, ...change }) => change)),
    }),
  },
  'ignores the token of a renewal': {
    caughtBy: 'a renewal with a token that is not the current one is lost and writes nothing',
    walk: true,
    faulty: (store) => ({
      renew: async (renewals, now) => {
        const found = await store.get(renewals.map(({ id }) => id))
        return store.renew(
          renewals.map((renewal, i) => ({ ...renewal, token: found[i]?.lease?.token ?? renewal.token })),
          now,
        )
      },
    }),
  },
  'refuses a renewal after the end of the lease': {
    caughtBy: 'a renewal after the end of the lease succeeds if no other worker took the task',
    walk: true,
    faulty: (store) => ({
      renew: async (renewals, now) => {
        const found = await store.get(renewals.map(({ id }) => id))
        const alive = renewals.map((renewal, i) =>
          (found[i]?.lease?.expiresAt ?? 0) > now! ? renewal : { ...renewal, token: '' },
        )
        return store.renew(alive, now)
      },
    }),
  },
  'moves the revision on a renewal': {
    caughtBy: 'a renewal between claim and complete does not conflict',
    walk: true,
    faulty: (store) => ({
      renew: async (renewals, now) => {
        const renewed = await store.renew(renewals, now)
        for (const record of await store.get(renewals.map(({ id }) => id))) {
          if (record?.status === 'running')
            await store.commit([{ ...record, from: 'running', set: {}, entry: record.history[0]! }])
        }
        return renewed
      },
    }),
  },
  'forgets keys': {
    caughtBy: 'a key in use brings the task it stands for, with its history, and the key record',
    walk: true,
    faulty: (store) => ({
      insert: (insertions, options) =>
        store.insert(
          insertions.map(({ task }) => ({ task })),
          options,
        ),
    }),
  },
  'ends a key with its task': {
    caughtBy: 'a key outlives its removed task until its own lifetime ends',
    walk: true,
    faulty: (store) => ({
      remove: (removals) => store.remove(removals.map((removal) => ({ ...removal, endKey: true }))),
    }),
  },
  'lets a key with an exact lifetime live on': {
    caughtBy: 'an exact lifetime ends a key at that instant though its task is there',
    walk: true,
    faulty: (store) => ({
      insert: (insertions, options) =>
        store.insert(
          insertions.map(({ task, key }) => (key ? { task, key: { ...key, exact: false } } : { task })),
          options,
        ),
    }),
  },
  'leases expired tasks': {
    caughtBy: 'a task is never leased at or after its expiry',
    walk: true,
    faulty: (store) => ({
      claim: async (want) => {
        const look = await store.claim(want)
        const { op, workerId, leaseTtl, now, limit } = want
        const wrong = look.due.filter(({ status }) => status === 'pending').slice(0, limit - look.leased.length)
        const token = `${op}.late`
        await store.commit(
          wrong.map((task) =>
            machine.claim({ ...task, expiresAt: null, availableAt: 0 }, { token, workerId, leaseTtl, now: now! }),
          ),
        )
        const taken = (await store.get(wrong.map(({ id }) => id))).filter((record) => record !== null)
        return { ...look, leased: [...look.leased, ...taken.map((record) => ({ ...record, history: [] }))] }
      },
    }),
  },
  'leases in the wrong order': {
    caughtBy: 'tasks are leased by priority, then availability, then id, over all types',
    walk: true,
    faulty: changeLeased((leased) => leased.toReversed()),
  },
  'hands out a task twice': {
    caughtBy: 'concurrent looks never lease the same task, and together lease all',
    walk: true,
    faulty: (store) => {
      let last: readonly TaskRecord[] = []
      return {
        claim: async (want) => {
          const look = await store.claim(want)
          const leased = [...last, ...look.leased].slice(0, want.limit)
          last = look.leased
          return { ...look, leased }
        },
      }
    },
  },
  'gives tokens that do not name the look': {
    caughtBy: 'tokens begin with the op of the look and are all different',
    walk: true,
    faulty: (store) => ({ claim: (want) => store.claim({ ...want, op: 'same' }) }),
  },
  'loses the last error of a leased task': {
    caughtBy:
      'the pending task of one that fails, is retried and completes is claimed exactly as the machine claims it',
    walk: true,
    faulty: changeLeased((leased) => leased.map((record) => ({ ...record, lastError: null }))),
  },
  'does not count the attempt': {
    caughtBy: 'a new task is claimed exactly as the machine claims it',
    walk: true,
    faulty: changeLeased((leased) => leased.map((record) => ({ ...record, attempts: record.attempts - 1 }))),
  },
  'reports nothing overdue': {
    caughtBy: 'a lapsed lease is reported from the instant it ends, as stored but without history',
    walk: true,
    faulty: (store) => ({ claim: async (want) => ({ ...(await store.claim(want)), due: [] }) }),
  },
  'reports more overdue tasks than asked for': {
    caughtBy: 'no more overdue tasks are reported than asked for, and all of them in the end',
    walk: true,
    faulty: (store) => ({ claim: (want) => store.claim({ ...want, dueLimit: 1_000 }) }),
  },
  'never says when to look again': {
    caughtBy: 'the next look is no later than the next instant at which something is to be done',
    walk: true,
    faulty: (store) => ({ claim: async (want) => ({ ...(await store.claim(want)), next: null }) }),
  },
  'drops the last history entry': {
    caughtBy: 'a task that completes is stored after every move as the machine made it',
    walk: true,
    faulty: changeRead((record) => ({ ...record, history: record.history.slice(0, -1) })),
  },
  'drops the first history entry of a long history': {
    caughtBy: 'a task that is moved 250 times by hand keeps the first entry and the last 99',
    faulty: changeRead((record) =>
      record.history.length < 100 ? record : { ...record, history: record.history.slice(1) },
    ),
  },
  'writes JSON its own way': {
    caughtBy: 'a payload with white space between tokens comes out as the text that went in',
    faulty: changeRead((record) => ({ ...record, input: JSON.stringify(JSON.parse(record.input)) })),
  },
  'begins a page with its cursor': {
    caughtBy: 'pages follow one another without gap or repeat, in both orders',
    walk: true,
    faulty: (store) => ({
      list: async (query, page) => {
        const [first] = page.after === undefined ? [] : await store.get([page.after])
        const { tasks, stoppedAt } = await store.list(query, page)
        return { tasks: first ? [{ ...first, history: [] }, ...tasks].slice(0, page.limit) : tasks, stoppedAt }
      },
    }),
  },
  'forgets the time of a view': {
    caughtBy: 'a list of scheduled tasks has exactly those that the view matches',
    walk: true,
    faulty: (store) => ({
      list: ({ views, ...query }, page) =>
        store.list(views ? { ...query, views: views.map(({ status }) => ({ status })) } : query, page),
    }),
  },
  'does not look at the time of the last move': {
    caughtBy: 'lists and counts take the time of the last move, whatever the status, asked at once or much later',
    faulty: (store) => ({ list: ({ updatedAfter: _, ...query }, page) => store.list(query, page) }),
  },
  'knows no end of the time of the last move': {
    caughtBy: 'lists and counts take both ends of the time of the last move, which are excluded',
    faulty: (store) => ({ list: ({ updatedBefore: _, ...query }, page) => store.list(query, page) }),
  },
  'takes creation for the last move': {
    caughtBy: 'a move brings a task back among those changed lately, a renewal does not',
    faulty: (store) => ({
      list: async (query, page) => ({
        tasks: (await store.list(query, page)).tasks.filter(({ createdAt }) => createdAt > (query.updatedAfter ?? 0)),
        stoppedAt: null,
      }),
    }),
  },
  'counts past the cap': {
    caughtBy: 'a count goes no further than its cap',
    walk: true,
    faulty: (store) => ({ count: (query, { now }) => store.count(query, { cap: 1_000_000, now }) }),
  },
  'forgets where a bounded list stopped': {
    caughtBy: 'a bounded read that stops early says where to continue, and continuing meets every task once',
    faulty: (store) => ({
      list: async (query, page) => ({
        tasks: (await store.list({}, { ...page, limit: page.maxScanned ?? 1_000_000 })).tasks
          .filter((record) => matches(record, query, page.now!))
          .slice(0, page.limit),
        stoppedAt: null,
      }),
    }),
  },
  'counts the newest and takes them for all': {
    caughtBy:
      'a bounded count that stopped says so: it is never too high, and exact unless it says that it is a lower bound',
    faulty: (store) => ({
      count: async (query, { cap, maxScanned = cap, now }) => ({
        ...(await store.count(query, { cap: Math.min(cap, maxScanned), now })),
        capped: false,
      }),
    }),
  },
  'counts retrying tasks twice': {
    caughtBy: 'the bounded counts of a queue have each view, and say which of them are lower bounds',
    faulty: (store) => ({
      countQueues: async (names, cap, now) =>
        (await countQueues(store, names, cap, now)).map((counts) => ({
          ...counts,
          scheduled: counts.scheduled + counts.retrying,
        })),
    }),
  },
  'puts documents whatever their version': {
    caughtBy: 'a put under another version is a conflict and writes nothing',
    faulty: changeDocuments((documents) => ({
      put: async (name, value) => documents.put(name, value, (await documents.get(name))?.version ?? 0),
    })),
  },
  'takes % in a prefix for a pattern': {
    caughtBy: 'a prefix is taken letter by letter: %, _, * and the rest mean themselves',
    faulty: changeDocuments((documents) => ({ list: (prefix) => documents.list(prefix.split('%')[0]!) })),
  },
  'lists no detached keys': {
    caughtBy: 'keys whose task was removed without ending them are the detached keys, and no others are',
    faulty: changeDetachedKeys(() => ({ list: async () => [] })),
  },
  'skips a detached key between pages': {
    caughtBy: 'pages of detached keys follow one another without gap or repeat',
    faulty: changeDetachedKeys((keys) => ({
      list: async ({ limit, after }) =>
        (await keys.list({ limit: limit + 1, ...(after === undefined ? null : { after }) })).slice(1),
    })),
  },
  'puts a key over a live one': {
    caughtBy: 'a key is not put over a live one, with or without a task, and is put over a dead one',
    faulty: changeDetachedKeys((keys) => ({ put: (records) => keys.put(records, Number.MAX_VALUE) })),
  },
  'forgets a key that is put': {
    caughtBy: 'a key that was put stands as if its task had been removed',
    faulty: changeDetachedKeys(() => ({ put: async (keys) => keys.map(() => true) })),
  },
  'does not write tags with a move': {
    caughtBy: 'a task that is moved to another store before it ran is stored after every move as the machine made it',
    faulty: (store) => ({
      commit: (changes) => store.commit(changes.map(({ set: { tags: _, ...set }, ...change }) => ({ ...change, set }))),
    }),
  },
  'takes writes under way for settled': {
    caughtBy: 'the instant up to which changes are visible is never in the future, and never goes back',
    faulty: (store) => ({ visibleUntil: async () => (await store.now()).at + 60_000 }),
  },
  'reports what nobody can judge': {
    caughtBy: 'an examination reports facts that can be judged, and changes nothing',
    faulty: () => ({ examine: async () => [{ check: 'weather' } as never] }),
  },
  'does not ring': {
    caughtBy: 'an insert has woken the listeners of its queue when it resolves',
    faulty: () => ({ wake: () => () => {} }),
  },
  'goes on after close': {
    caughtBy: 'a closed store refuses every call with STORE_CLOSED',
    faulty: () => ({ close: async () => {} }),
  },
}

const open = ({ faulty }: Fault): Store => {
  const store = openMemory()
  return withFault(store, faulty(store))
}

describe.each(Object.entries(FAULTS))('a store that %s', (_, fault) => {
  test(`fails the case: ${fault.caughtBy}`, async () => {
    const named = conformanceCases.find(({ name }) => name === fault.caughtBy)
    expect(named, 'there is no such case').toBeDefined()
    await expect(named!.run(open(fault))).rejects.toThrow()
    await expect(named!.run(openMemory())).resolves.toBeUndefined()
  })

  test.runIf(fault.walk)('is met by the model walk, which says where', async () => {
    const walks = Array.from({ length: 20 }, (_, i) => i + 1).map((seed) =>
      walk(open(fault), { seed, steps: 300, amends: false }),
    )
    const met = (await Promise.allSettled(walks)).filter(({ status }) => status === 'rejected')
    expect(met.length).toBeGreaterThan(0)
    expect(String((met[0] as PromiseRejectedResult).reason.message)).toMatch(
      /^model walk, seed \d+, step \d+, \{"do":"\w+"/,
    )
  })
})
