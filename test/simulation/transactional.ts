/** The contract of the SQL stores: every call is one transaction on a server. It is the memory store, in a process that never dies, behind the network. */
import type { Change, Renewal, Renewed, Store, TaskRecord, WakeListener } from '../../src/store/store.ts'
import { Host } from './host.ts'
import type { StoreParts } from './profiles.ts'
import type { SimulatedStore } from './simulated-store.ts'

/** Plain data only. Many times faster than structuredClone. */
const copied = <T>(value: T): T => {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(copied) as T
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== null && (prototype as { constructor: { name: string } }).constructor.name !== 'Object')
    return structuredClone(value)
  const copy: Record<string, unknown> = {}
  for (const name in value) copy[name] = copied(value[name])
  return copy as T
}

type Call = (...args: never[]) => Promise<unknown>

export const transactional = ({
  kernel,
  program,
  settings,
  wire,
  checker,
  machine,
  name: serverName = 'server',
}: StoreParts): SimulatedStore => {
  const server = new Host(kernel, program, serverName, machine)
  let shown = { at: machine.wall(), mono: machine.mono() }
  // A store's clock does not go back. SQLite carries its time over a step back, by the monotonic clock; a server's clock is disciplined.
  const wall = (): number => {
    const mono = machine.mono()
    shown = { at: Math.max(shown.at + mono - shown.mono, machine.wall()), mono }
    return Math.floor(shown.at)
  }
  const store = server.enter(() => server.holdfast.openMemory({ wall }))

  /** The tasks that a call has changed, as they are right after it: no other call can come between. */
  const observe = async (ids: readonly string[]): Promise<void> => {
    const found = await server.enter(() => store.get(ids))
    for (const [i, id] of ids.entries()) checker.saw(id, found[i] ?? null, wall())
  }
  const idsIn: Readonly<Record<string, (args: readonly unknown[], answer: unknown) => readonly string[]>> = {
    insert: ([insertions]) => (insertions as readonly { readonly task: TaskRecord }[]).map(({ task }) => task.id),
    claim: (_, answer) => (answer as { readonly leased: readonly TaskRecord[] }).leased.map(({ id }) => id),
    commit: ([changes]) => (changes as readonly Change[]).map(({ id }) => id),
    renew: ([renewals]) => (renewals as readonly { readonly id: string }[]).map(({ id }) => id),
    remove: ([removals]) => (removals as readonly { readonly id: string }[]).map(({ id }) => id),
  }

  /** Only the current lease is held: whoever is told so goes on. */
  const checkRenewals = (renewals: readonly Renewal[], answers: readonly Renewed[]): void => {
    for (const [i, { id, token }] of renewals.entries()) {
      const holder = checker.tasks.get(id)?.lease?.token
      if ((answers[i] === 'held' || answers[i] === 'cancel') && holder !== token)
        checker.violate('I3', `task ${id}: the lease ${token} was renewed, but ${holder ?? 'nobody'} held it`, id)
    }
  }

  const storeFor = (host: Host): Store => {
    const { HoldfastError } = host.holdfast
    const failed = (why: string): Error =>
      new HoldfastError('STORE_UNAVAILABLE', `simulated: ${why}`, why === 'refused' ? { reason: 'refused' } : {})
    const remote =
      (name: string, call: Call) =>
      (...args: unknown[]): Promise<unknown> => {
        const sent = copied(args)
        if (name === 'insert') for (const id of idsIn['insert']!(sent, null)) checker.sends(id)
        return wire.call({
          host,
          name,
          what: JSON.stringify(args),
          failed,
          async apply() {
            try {
              const answer = await server.enter(() => call(...(sent as never[])))
              const ids = idsIn[name]?.(sent, answer) ?? []
              if (ids.length > 0) await observe(ids)
              if (name === 'renew') checkRenewals(sent[0] as readonly Renewal[], answer as readonly Renewed[])
              return copied(answer)
            } catch (error) {
              const { code, message, details } = error as InstanceType<typeof HoldfastError>
              throw code === undefined ? error : new HoldfastError(code, message, details)
            }
          },
        })
      }
    const members = Object.fromEntries(
      (
        [
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
          'waitingGroups',
        ] as const
      ).map((name) => [name, remote(name, (store[name] as Call).bind(store))]),
    )
    const within = (place: 'documents' | 'detachedKeys'): object =>
      Object.fromEntries(
        Object.entries(store[place] as object).map(([name, call]) => [name, remote(`${place}.${name}`, call as Call)]),
      )
    const wake = (listener: WakeListener): (() => void) =>
      store.wake((queues) => {
        if (wire.isCut(host) || wire.strikes('lose-wakeup')) return
        kernel.after(wire.latency(), () => host.deliver(() => listener(queues)))
      })
    const capabilities = new Set(store.capabilities)
    if (!settings.isOneMachine) capabilities.delete('host-clock')
    return {
      ...members,
      capabilities,
      address: `simulated:${serverName}`,
      leaseTtl: store.leaseTtl,
      claimsAtOnce: settings.isOneMachine ? 1 : 2,
      documents: within('documents'),
      detachedKeys: within('detachedKeys'),
      wake,
      close: async () => {},
    } as unknown as Store
  }

  return {
    prepare: async () => {},
    open: async (host) => storeFor(host),
    now: wall,
    recoversWithin: ({ leaseTtl, pollInterval }) => 2 * Math.max(leaseTtl, 5_000) + pollInterval + 5_000,
    all: () =>
      server.enter(async () => {
        const { tasks } = await store.list({}, { order: 'oldest', limit: 100_000, now: null })
        return (await store.get(tasks.map(({ id }) => id))).filter((task) => task !== null)
      }),
    broken: async () => [],
  }
}
