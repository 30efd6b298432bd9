/** One stream of server-sent events for the whole page, closed while the tab is hidden. Where it is missing, the page polls. */
import { signal } from '@preact/signals'
import { ApiError, addressOf, get } from './api.ts'
import type { Change, Queue } from './types.ts'

const SHOWN = 40
const AGAIN = 4_000
const POLL_EVERY = 3_000
/** A server that takes longer for its counts is taken for lost. */
const LONGEST_POLL = 8_000
/** There is an event every second. After this long without one, a proxy is holding them back. */
const SILENT = 10_000

/** `polling`: the server answers, but its stream does not arrive. `lost`: it does not answer. */
type Connection = 'connecting' | 'live' | 'polling' | 'lost'

export const connection = signal<Connection>('connecting')
/** null before the first event. */
export const queues = signal<readonly Queue[] | null>(null)
export const recent = signal<readonly Change[]>([])

type Listener = (ids: ReadonlySet<string>, skipped: number) => void
const listeners = new Set<Listener>()

/** Receives the ids of changed tasks. `skipped` is the number of further, unknown ones. */
export const onChanges = (listener: Listener): (() => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

let source: EventSource | null = null
let later = 0

const tellAll = (changes: readonly Change[], skipped: number): void => {
  const ids = new Set(changes.map(({ id }) => id))
  for (const listener of listeners) listener(ids, skipped)
}

let heardAt = 0

const hear = <T>(name: string, then: (data: T) => void): void => {
  source!.addEventListener(name, (event) => {
    heardAt = performance.now()
    if (connection.value !== 'live') {
      connection.value = 'live'
      // Changes were missed while the stream was closed: pages read again.
      tellAll([], 1)
    }
    then(JSON.parse((event as MessageEvent<string>).data) as T)
  })
}

const isMissing = (): boolean => connection.value !== 'live' || performance.now() - heardAt > SILENT

let isPolling = false

const poll = async (): Promise<void> => {
  if (isPolling || document.hidden || !isMissing()) return
  isPolling = true
  const read = await get<{ queues: Queue[] }>('/stats', {}, LONGEST_POLL)
    .catch((thrown: unknown) => {
      // A server that refuses is there.
      if (thrown instanceof ApiError && thrown.status > 0) return null
      if (!document.hidden && isMissing()) connection.value = 'lost'
      return undefined
    })
    .finally(() => {
      isPolling = false
    })
  if (read === undefined || !isMissing()) return
  // A stream from before the interruption may be dead without a sign.
  if (connection.value === 'lost') open()
  connection.value = 'polling'
  if (read === null) return
  setQueues(read.queues)
  tellAll([], 1)
}

const open = (): void => {
  close()
  source = new EventSource(addressOf('/changes'))
  source.onerror = () => {
    if (connection.value === 'live') connection.value = 'connecting'
    void poll()
    // A browser reconnects after a lost connection, but not after an error response.
    if (source?.readyState === EventSource.CLOSED) later = setTimeout(open, AGAIN)
  }
  // Only as a sign of life: charts are read from the server.
  hear('tick', () => {})
  hear<{ queues: Queue[] }>('stats', ({ queues: counted }) => setQueues(counted))
  hear<{ changes: Change[]; skipped: number }>('changes', ({ changes, skipped }) => {
    recent.value = [...changes.toReversed(), ...recent.value].slice(0, SHOWN)
    tellAll(changes, skipped)
  })
}

const close = (): void => {
  clearTimeout(later)
  source?.close()
  source = null
}

export const setQueues = (counted: readonly Queue[]): void => {
  queues.value = counted.toSorted((a, b) => (a.queue < b.queue ? -1 : 1))
}

export const startLive = (): void => {
  open()
  setInterval(() => void poll(), POLL_EVERY)
  // An open stream does not notice that the network is gone.
  addEventListener('offline', () => {
    close()
    connection.value = 'connecting'
    void poll()
  })
  addEventListener('online', () => {
    if (!document.hidden) open()
  })
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) {
      close()
      connection.value = 'connecting'
    } else if (source === null) open()
  })
}
