/** Both sides of a keeper on a separate thread, so that a busy event loop loses no leases. The store provides the renewal. */
import { type MessagePort, parentPort, type Worker, workerData } from 'node:worker_threads'
import type { Keeper, KeeperOptions } from '../store.ts'
import { endThread } from './end-of-thread.ts'
import type { LeaseName } from './given-back.ts'
import { LeaseBoard } from './lease-board.ts'
import { type KeeperHost, LeaseKeeper } from './lease-keeper.ts'
import { type PackedLeases, packLeases, SINCE_LONG } from './packed-leases.ts'
import { receiveReports, reportTo } from './report-channel.ts'
import { KEEP_EXTERNAL, startThread, threadFile } from './thread-file.ts'

interface ThreadData<Place> {
  readonly place: Place
  readonly workerId: string
  readonly board: SharedArrayBuffer
  readonly reports: MessagePort
  readonly leaseTtl: number
  readonly every: number
}

type ToKeeper =
  | { readonly kind: 'claiming'; readonly op: string; readonly ticket: number; readonly since: number }
  | { readonly kind: 'leasing'; readonly op: string; readonly id: string }
  | { readonly kind: 'hold'; readonly leases: PackedLeases }
  | { readonly kind: 'progress'; readonly slot: number; readonly progress: string }
  | { readonly kind: 'close' }

export interface KeeperThread<Place> {
  /** The file next to which the thread's file is. */
  readonly beside: string
  readonly name: string
  /** Settings for the thread, which are copied. */
  readonly place: Place
  /** Names, for the warning, the settings that may contain functions. */
  readonly settings: string
  /** Start the thread with the first lease, because its modules take time and memory. */
  readonly isLate?: boolean
  /**
   * It can find what a claim has leased whose reply was not seen: `by-op` in the store, `by-id` among the tasks of which it is told before each is
   * leased. Left out: it cannot.
   */
  readonly keepsClaims?: 'by-op' | 'by-id'
}

// ── the event loop's side ────────────────────────────────────────────────────────────────────────────────────────

/** Whether the settings can be copied to a thread: functions cannot. */
const isPortable = (place: unknown): boolean => {
  try {
    structuredClone(place)
    return true
  } catch {
    return false
  }
}

/** Starts keepers on a thread. If that is impossible, returns undefined and warns about the consequence. */
export const threadedKeeper = <Place>(
  thread: KeeperThread<Place>,
  warn: ((message: string) => void) | undefined,
): ((options: KeeperOptions) => Keeper) | undefined => {
  const { beside, place, settings } = thread
  const file = threadFile(beside)
  if (file !== null && isPortable(place)) return (options) => startKeeper(file, thread, options, warn)
  const why = file === null ? KEEP_EXTERNAL : `${settings} have functions, which cannot be passed to another thread`
  warn?.(`${ON_EVENT_LOOP}: ${why}`)
  return undefined
}

const ON_EVENT_LOOP = 'leases are renewed on the event loop, so a handler that computes for long can lose its lease'

const startKeeper = <Place>(
  file: URL,
  { name, place, isLate = false, keepsClaims }: KeeperThread<Place>,
  { workerId, board, leaseTtl, every, held, report }: KeeperOptions,
  warn: ((message: string) => void) | undefined,
): Keeper => {
  let reports = receiveReports(report)
  let isClosed = false
  const start = (): Worker => {
    const data: ThreadData<Place> = { place, workerId, board: board.memory, reports: reports.port, leaseTtl, every }
    const started = startThread(file, name, data, { transferList: [reports.port] })
    started.on('error', (error) => warn?.(`the thread that renews leases died and is started again: ${error.message}`))
    started.once('exit', () => {
      if (!isClosed) restartSoon()
    })
    started.unref()
    return started
  }
  /** Replaces a thread that died and sends it all held leases. Not at once, because it may die for the same reason again. */
  const restartSoon = (): void => {
    setTimeout(() => {
      if (isClosed) return
      reports.close()
      reports = receiveReports(report)
      thread = start()
      post({ kind: 'hold', leases: packLeases(held(), SINCE_LONG) })
    }, every / 2).unref()
  }
  let thread = isLate ? null : start()
  const post = (message: ToKeeper): void => {
    thread ??= start()
    thread.postMessage(message)
  }
  const claiming = (op: string, ticket: number, since: number): void => post({ kind: 'claiming', op, ticket, since })
  return {
    ...(keepsClaims === 'by-op' ? { claiming } : null),
    ...(keepsClaims === 'by-id' ? tellOnce(claiming, (op, id) => post({ kind: 'leasing', op, id })) : null),
    hold: (leases, since) => post({ kind: 'hold', leases: packLeases(leases, since) }),
    progress: (slot, progress) => post({ kind: 'progress', slot, progress }),
    reportNow: () => reports.reportNow(),
    close: () => {
      isClosed = true
      if (thread !== null) post({ kind: 'close' })
      reports.close()
    },
  }
}

/** A claim that leases nothing is not told: a late thread is not started for it. */
const tellOnce = (
  claiming: (op: string, ticket: number, since: number) => void,
  leasing: (op: string, id: string) => void,
): Required<Pick<Keeper, 'claiming' | 'leasing'>> => {
  const untold = new Map<string, { readonly ticket: number; readonly since: number }>()
  return {
    claiming: (op, ticket, since) => {
      remember(untold, op, { ticket, since })
    },
    leasing: (op, id) => {
      const claim = untold.get(op)
      if (untold.delete(op)) claiming(op, claim!.ticket, claim!.since)
      leasing(op, id)
    },
  }
}

/** More claims than can be under way at once are not remembered. */
const MOST_CLAIMS = 32

const remember = <T>(claims: Map<string, T>, op: string, value: T): void => {
  claims.set(op, value)
  for (const oldest of claims.keys()) {
    if (claims.size <= MOST_CLAIMS) break
    claims.delete(oldest)
  }
}

// ── the thread's end ─────────────────────────────────────────────────────────────────────────────────────────────

export interface Renewing extends Pick<KeeperHost, 'renew' | 'leasedBy' | 'tasks'> {
  /** Instead of `leasedBy`, where tasks are told one by one: finds it among those. */
  readonly leasedAmong?: (op: string, ids: readonly string[]) => Promise<readonly LeaseName[]>
  /** With every lease that is held: so that the first round, a third of the lease from there, does not have to wait. */
  prepare(): void
  close(): void
}

/** The settings that the thread was started with. */
export const keeperTold = <Place>(): Omit<ThreadData<Place>, 'board'> => workerData as ThreadData<Place>

/** Called once, by the thread's own file. */
export const keepOnThread = ({ prepare, close, leasedAmong, ...host }: Renewing): void => {
  const { workerId, board, reports, leaseTtl, every } = workerData as ThreadData<unknown>
  const port = parentPort!
  const told = new Map<string, string[]>()
  const keeper = new LeaseKeeper(
    {
      workerId,
      board: new LeaseBoard(board),
      leaseTtl,
      every,
      report: reportTo(reports),
    },
    {
      ...host,
      ...(leasedAmong && { leasedBy: (_, op) => leasedAmong(op, told.get(op) ?? []) }),
      mono: () => Number(process.hrtime.bigint()) / 1e6,
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
    } else if (message.kind === 'claiming') {
      prepare()
      remember(told, message.op, [])
      keeper.claiming(message.op, message.ticket, message.since)
    } else if (message.kind === 'leasing') told.get(message.op)?.push(message.id)
    else if (message.kind === 'progress') keeper.progress(message.slot, message.progress)
    else {
      keeper.close()
      reports.close()
      close()
      endThread(port)
    }
  })
}
