/** A keeper on a thread of its own, both ends of it: a busy event loop loses no leases. What renews them is the store's. */
import { hrtime } from 'node:process'
import { parentPort, Worker, workerData } from 'node:worker_threads'
import { LeaseBoard } from './lease-board.ts'
import { type KeeperHost, LeaseKeeper } from './lease-keeper.ts'
import { type PackedLeases, packLeases } from './packed-leases.ts'
import type { Keeper, KeeperOptions, KeeperReport } from './store.ts'

interface ThreadData<Place> {
  readonly place: Place
  readonly board: SharedArrayBuffer
  readonly leaseTtl: number
  readonly every: number
}

type ToKeeper =
  | { readonly kind: 'hold'; readonly leases: PackedLeases }
  | { readonly kind: 'progress'; readonly slot: number; readonly progress: string }
  | { readonly kind: 'close' }

interface FromKeeper {
  readonly results: readonly KeeperReport[]
  readonly renewedAt: number
}

export interface KeeperThread<Place> {
  /** The file that wants a `thread` beside it: .ts in a checkout, .js in the package. */
  readonly beside: string
  readonly name: string
  /** What the thread needs to know; it is copied. */
  readonly place: Place
  /** With the first lease, not before: where what it loads takes its time and memory. */
  readonly isLate?: boolean
}

// ── the event loop's end ─────────────────────────────────────────────────────────────────────────────────────────

/** Whether a thread can be told: functions stay where they are. */
export const isPortable = (place: unknown): boolean => {
  try {
    structuredClone(place)
    return true
  } catch {
    return false
  }
}

export const startKeeper = <Place>(
  { beside, name, place, isLate = false }: KeeperThread<Place>,
  { board, leaseTtl, every, report }: KeeperOptions,
): Keeper => {
  const start = (): Worker => {
    const module = new URL(beside.endsWith('.ts') ? './thread.ts' : './thread.js', beside)
    const data: ThreadData<Place> = { place, board: board.memory, leaseTtl, every }
    const started = new Worker(module, { workerData: data, name })
    started.on('message', ({ results, renewedAt }: FromKeeper) => report(results, renewedAt))
    // A thread that fails renews nothing: the holders' own deadlines tell them.
    started.on('error', () => {})
    started.unref()
    return started
  }
  let thread = isLate ? null : start()
  const post = (message: ToKeeper): void => {
    thread ??= start()
    thread.postMessage(message)
  }
  return {
    hold: (leases) => post({ kind: 'hold', leases: packLeases(leases) }),
    progress: (slot, progress) => post({ kind: 'progress', slot, progress }),
    close: () => {
      if (thread !== null) post({ kind: 'close' })
    },
  }
}

// ── the thread's end ─────────────────────────────────────────────────────────────────────────────────────────────

export interface Renewing {
  readonly renew: KeeperHost['renew']
  /** With every lease that is held: so that the first round, a third of the lease from there, does not have to wait. */
  prepare(): void
  close(): void
}

/** What the thread was told. */
export const keeperTold = <Place>(): Omit<ThreadData<Place>, 'board'> => workerData as ThreadData<Place>

/** Called once, by the thread's own file. */
export const keepOnThread = ({ renew, prepare, close }: Renewing): void => {
  const { board, leaseTtl, every } = workerData as ThreadData<unknown>
  const port = parentPort!
  const keeper = new LeaseKeeper(
    {
      board: new LeaseBoard(board),
      leaseTtl,
      every,
      report: (results, renewedAt) => port.postMessage({ results, renewedAt } satisfies FromKeeper),
    },
    {
      renew,
      mono: () => Number(hrtime.bigint()) / 1e6,
      after: (delay, tick) => {
        const timer = setTimeout(tick, delay)
        return () => clearTimeout(timer)
      },
    },
  )
  port.on('message', (message: ToKeeper) => {
    if (message.kind === 'hold') {
      prepare()
      keeper.holdPacked(message.leases)
    } else if (message.kind === 'progress') keeper.progress(message.slot, message.progress)
    else {
      keeper.close()
      port.close()
      close()
    }
  })
}
