/** Which workers are alive: each writes a document to the store every ten seconds, on S3 every minute. */
import { hostname } from 'node:os'
import { WORKER } from '../../core/storage/document-names.ts'
import type { Instant } from '../../core/task.ts'
import type { Document } from '../../store/store.ts'
import { version } from '../../version.ts'
import { type Cancel, pause } from '../clock.ts'
import { editDocument } from '../documents.ts'
import { withPatience } from '../patience.ts'
import type { Session } from '../session.ts'
import type { WorkerSettings } from './options.ts'
import type { StuckTask } from './stuck.ts'

/** A worker as it is registered in the store. */
export interface WorkerInfo {
  /** As histories show it. */
  readonly id: string
  /** The types that it handles. */
  readonly types: readonly string[]
  /** The queues that it serves. */
  readonly queues: readonly string[]
  /** How many handlers it runs at once. */
  readonly concurrency: number
  /** The version of Holdfast. */
  readonly version: string
  /** The name of its machine. */
  readonly host: string
  /** The id of its process. */
  readonly pid: number
  /** When it started. */
  readonly startedAt: Instant
  /** When its last heartbeat was written. */
  readonly beatAt: Instant
  /** 'http' if the worker claims over HTTP; absent if it uses the store directly. */
  readonly via?: 'http'
  /** Only for a worker over HTTP with long leases, in milliseconds: it renews rarely, so it counts as gone only after this much silence. */
  readonly leaseTtl?: number
  /** Handlers that did not stop when their signal aborted: their number, and the first 100 of their tasks. */
  readonly stuck: { readonly count: number; readonly tasks: readonly StuckTask[] }
  /** False if as many handlers are stuck as the worker has slots: it claims nothing until one settles. */
  readonly claiming: boolean
}

/** The part that may change while the worker runs. */
export interface WorkerState {
  readonly types: readonly string[]
  readonly stuck: readonly StuckTask[]
  /** The slots they had: a batch had one. */
  readonly stuckSlots: number
  readonly claiming: boolean
}

/** A store with long leases is one with expensive requests, so its beats are rarer too. */
const beatEvery = ({ store }: Session): number => Math.max(10_000, 2 * store.leaseTtl)
/** A worker that missed three beats counts as gone. */
const goneAfter = (session: Session): number => 3 * beatEvery(session)
/** A worker with long leases is silent between two renewals. */
const silenceOf = (session: Session, { leaseTtl = 0 }: { readonly leaseTtl?: number | undefined }): number =>
  Math.max(goneAfter(session), leaseTtl)
/** Beats between two sweeps for the documents of dead workers. */
const SWEEP_EVERY = 6
/** How soon a change is written. Changes within this time share one write. */
const CHANGED_AFTER = 250
const MOST_STUCK = 100
/** How long a stopping worker waits for a store that does not answer. Other workers sweep the document that it leaves behind. */
const PATIENCE = 1_000

export class Registration {
  readonly #session: Session
  readonly #settings: WorkerSettings
  readonly #state: () => WorkerState
  readonly #name: string
  #startedAt: Instant = 0
  #version = 0
  #beats = 0
  #beating: Promise<void> | null = null
  #isStopped = false
  #hasChanged = false
  #cancel: Cancel = () => {}

  constructor(session: Session, settings: WorkerSettings, state: () => WorkerState) {
    this.#session = session
    this.#settings = settings
    this.#state = state
    this.#name = WORKER + settings.id
  }

  start(): void {
    this.#startedAt = this.#session.time.now()
    this.#tick()
  }

  /** Writes before the next beat is due. */
  changed(): void {
    if (this.#hasChanged || this.#isStopped) return
    this.#hasChanged = true
    this.#cancel()
    this.#cancel = this.#session.clock.after(CHANGED_AFTER, () => this.#tick())
  }

  #tick(): void {
    this.#cancel = this.#session.clock.after(beatEvery(this.#session), () => this.#tick())
    // A beat in flight is enough, unless it began before the last change.
    if (this.#beating === null) {
      this.#hasChanged = false
      this.#beating = this.#beat()
    } else if (this.#hasChanged) {
      void this.#beating.then(() => {
        this.#hasChanged = false
        this.changed()
      })
    }
  }

  /** Removes the document, unless the store does not answer. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#cancel()
    const over = new AbortController()
    const leave = this.#leave().finally(() => over.abort())
    await Promise.race([leave, pause(this.#session.clock, PATIENCE, over.signal)])
  }

  /** Never rejects: the worker keeps working even if its beat cannot be written. */
  async #beat(): Promise<void> {
    try {
      if (this.#beats++ % SWEEP_EVERY === 0) await sweep(this.#session, this.#name)
      await this.#write()
    } catch {
      // The next beat tries again.
    }
    this.#beating = null
  }

  async #write(): Promise<void> {
    const { documents } = this.#session.store
    const value = this.#text()
    let version = await documents.put(this.#name, value, this.#version)
    if (version === null) {
      // Swept while this process was suspended, or the reply to the last beat was lost.
      const there = await documents.get(this.#name)
      version = await documents.put(this.#name, value, there?.version ?? 0)
    }
    this.#version = version ?? this.#version
  }

  async #leave(): Promise<void> {
    await this.#beating
    try {
      const { documents } = this.#session.store
      if (await documents.delete(this.#name, this.#version)) return
      const there = await documents.get(this.#name)
      if (there !== null) await documents.delete(this.#name, there.version)
    } catch {
      // Another worker sweeps it.
    }
  }

  #text(): string {
    const { queues, concurrency } = this.#settings
    const { types, stuck, stuckSlots, claiming } = this.#state()
    return JSON.stringify({
      types,
      queues,
      concurrency,
      version: version(),
      host: hostname(),
      pid: process.pid,
      startedAt: new Date(this.#startedAt).toISOString(),
      beatAt: new Date(this.#session.time.now()).toISOString(),
      stuck: { count: stuckSlots, tasks: stuck.slice(0, MOST_STUCK) },
      claiming,
    })
  }
}

/** A worker that claims through a server: the server writes the document for it. */
export interface RemoteWorker {
  readonly queues: readonly string[]
  readonly types: readonly string[]
  readonly concurrency: number
  /** The host name of that server. */
  readonly host: string
  /** Milliseconds: how long its leases last. Default: as the store suggests. */
  readonly leaseTtl?: number | undefined
}

const isComplete = (facts: Partial<RemoteWorker>): facts is RemoteWorker => facts.queues !== undefined

/** Remote workers. Each is written at most once per beat, and counts as gone after three beats without a call, or one long lease. */
export class RemoteWorkers {
  readonly #session: Session
  readonly #told = new Map<string, { readonly at: number; readonly text: string; readonly worker: RemoteWorker }>()
  #sweptAt = Number.NEGATIVE_INFINITY

  constructor(session: Session) {
    this.#session = session
  }

  /**
   * `facts` update its registration. A renewal has only the length of the lease, and is ignored if no claim was seen. Never rejects: a
   * claim must not fail because its worker could not be recorded.
   */
  async heardOf(id: string, facts: Partial<RemoteWorker>): Promise<void> {
    const { clock, time } = this.#session
    const told = this.#told.get(id)
    const known = { ...told?.worker, ...facts }
    if (!isComplete(known)) return
    const leaseTtl =
      known.leaseTtl !== undefined && known.leaseTtl > goneAfter(this.#session) ? known.leaseTtl : undefined
    const worker = { ...known, leaseTtl }
    const text = JSON.stringify(worker)
    if (told !== undefined && told.text === text && clock.mono() - told.at < beatEvery(this.#session)) return
    this.#told.set(id, { at: clock.mono(), text, worker })
    for (const [other, one] of this.#told)
      if (clock.mono() - one.at > silenceOf(this.#session, one.worker)) this.#told.delete(other)
    const now = new Date(time.now()).toISOString()
    try {
      await editDocument(this.#session, WORKER + id, (before) => {
        const startedAt = before === null ? now : (JSON.parse(before) as { startedAt: string }).startedAt
        return JSON.stringify({ ...worker, version: version(), pid: 0, via: 'http', startedAt, beatAt: now })
      })
      await this.#sweep(WORKER + id)
    } catch {
      this.#told.delete(id)
    }
  }

  /** Every start of such a worker has a new id, and there may be no other worker that sweeps the old documents. */
  async #sweep(own: string): Promise<void> {
    const { clock } = this.#session
    if (clock.mono() - this.#sweptAt < SWEEP_EVERY * beatEvery(this.#session)) return
    this.#sweptAt = clock.mono()
    await sweep(this.#session, own)
  }
}

/** By id. */
export const liveWorkers = async (session: Session): Promise<WorkerInfo[]> => {
  const documents = await withPatience(session, () => session.store.documents.list(WORKER))
  const now = session.time.now()
  return documents.flatMap((document) => {
    const info = parsed(document)
    return info !== null && now - info.beatAt <= silenceOf(session, info) ? [info] : []
  })
}

const sweep = async (session: Session, own: string): Promise<void> => {
  const { store, time } = session
  for (const document of await store.documents.list(WORKER)) {
    const info = parsed(document)
    const isGone = info === null || time.now() - info.beatAt > silenceOf(session, info)
    if (isGone && document.name !== own) await store.documents.delete(document.name, document.version)
  }
}

/** null if the document has a format that this release does not know. */
const parsed = ({ name, value }: Document): WorkerInfo | null => {
  try {
    const info = JSON.parse(value)
    const [startedAt, beatAt] = [Date.parse(info.startedAt), Date.parse(info.beatAt)]
    if (!Array.isArray(info.types) || !Array.isArray(info.queues) || Number.isNaN(beatAt)) return null
    const { stuck = { count: 0, tasks: [] }, claiming = true } = info
    return { ...info, id: name.slice(WORKER.length), startedAt, beatAt, stuck, claiming }
  } catch {
    return null
  }
}
