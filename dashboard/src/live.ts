/** One stream of server-sent events for the whole page. It is closed while the tab is hidden. */
import { signal } from '@preact/signals'
import { addressOf } from './api.ts'
import { storeTime } from './time.ts'
import type { Change, Counts, Queue, Tick } from './types.ts'

const KEPT = 300
const SHOWN = 40
const AGAIN = 4_000

export type Connection = 'connecting' | 'live' | 'lost'

export interface Depth extends Pick<Counts, 'ready' | 'running' | 'scheduled' | 'retrying'> {
  readonly at: number
}

export const connection = signal<Connection>('connecting')
export const ticks = signal<readonly Tick[]>([])
export const depths = signal<readonly Depth[]>([])
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

const hear = <T>(name: string, then: (data: T) => void): void => {
  source!.addEventListener(name, (event) => then(JSON.parse((event as MessageEvent<string>).data) as T))
}

const open = (): void => {
  close()
  source = new EventSource(addressOf('/changes'))
  source.onopen = () => {
    // Events were missed while the stream was closed: pages read again.
    if (connection.value !== 'live') tellAll([], 1)
    connection.value = 'live'
  }
  source.onerror = () => {
    connection.value = 'lost'
    // A browser reconnects after a lost connection, but not after an error response.
    if (source?.readyState === EventSource.CLOSED) later = setTimeout(open, AGAIN)
  }
  hear<{ ticks: Tick[] }>('past', ({ ticks: past }) => {
    ticks.value = past
  })
  hear<Tick>('tick', (tick) => {
    ticks.value = [...ticks.value, tick].slice(-KEPT)
  })
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
  const of = (name: keyof Counts): number => counted.reduce((so, queue) => so + queue[name], 0)
  const depth = { at: storeTime(), ready: of('ready'), running: of('running'), scheduled: of('scheduled') }
  depths.value = [...depths.value, { ...depth, retrying: of('retrying') }].slice(-KEPT)
}

export const startLive = (): void => {
  open()
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) {
      close()
      connection.value = 'connecting'
    } else if (source === null) open()
  })
}
