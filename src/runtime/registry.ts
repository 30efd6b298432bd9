/** Which workers are alive: each says so in a document of the store, every ten seconds or so. */
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import type { Instant } from '../core/task.ts'
import type { Document } from '../store/store.ts'
import { type Cancel, pause } from './clock.ts'
import type { Session } from './session.ts'
import { withPatience } from './settle.ts'
import type { WorkerSettings } from './worker-options.ts'

export interface WorkerInfo {
  readonly id: string
  readonly types: readonly string[]
  readonly queues: readonly string[]
  readonly concurrency: number
  /** Of Holdfast. */
  readonly version: string
  readonly host: string
  readonly pid: number
  readonly startedAt: Instant
  /** When it was last heard of. */
  readonly beatAt: Instant
}

const PREFIX = 'worker/'
/** Where leases are long, requests are dear: then a beat is as seldom as a lease is long. */
const beatEvery = ({ store }: Session): number => Math.max(10_000, store.leaseTtl)
/** Three beats missed: gone. */
const goneAfter = (session: Session): number => 3 * beatEvery(session)
/** Beats between two looks for documents that the dead have left. */
const SWEEP_EVERY = 6
/** How long a worker that stops waits for a store that does not answer: what it leaves is swept by others. */
const PATIENCE = 1_000

export class Registration {
  readonly #session: Session
  readonly #settings: WorkerSettings
  readonly #types: () => readonly string[]
  readonly #name: string
  #startedAt: Instant = 0
  #version = 0
  #beats = 0
  #beating: Promise<void> | null = null
  #cancel: Cancel = () => {}

  constructor(session: Session, settings: WorkerSettings, types: () => readonly string[]) {
    this.#session = session
    this.#settings = settings
    this.#types = types
    this.#name = PREFIX + settings.id
  }

  start(): void {
    this.#startedAt = this.#session.time.now()
    this.#tick()
  }

  #tick(): void {
    this.#cancel = this.#session.clock.after(beatEvery(this.#session), () => this.#tick())
    // One that is still under way will do.
    this.#beating ??= this.#beat()
  }

  /** Takes the document away, unless the store does not answer. */
  async stop(): Promise<void> {
    this.#cancel()
    const over = new AbortController()
    const leave = this.#leave().finally(() => over.abort())
    await Promise.race([leave, pause(this.#session.clock, PATIENCE, over.signal)])
  }

  /** Never rejects: work goes on whether or not it can be told. */
  async #beat(): Promise<void> {
    try {
      if (this.#beats++ % SWEEP_EVERY === 0) await sweep(this.#session, this.#name)
      await this.#write()
    } catch {
      // The next one tells.
    }
    this.#beating = null
  }

  async #write(): Promise<void> {
    const { documents } = this.#session.store
    const value = this.#text()
    let version = await documents.put(this.#name, value, this.#version)
    if (version === null) {
      // Swept while this process stood still, or the reply to the last beat was lost.
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
      // Swept by others.
    }
  }

  #text(): string {
    const { queues, concurrency } = this.#settings
    return JSON.stringify({
      types: this.#types(),
      queues,
      concurrency,
      version: ownVersion(),
      host: hostname(),
      pid: process.pid,
      startedAt: new Date(this.#startedAt).toISOString(),
      beatAt: new Date(this.#session.time.now()).toISOString(),
    })
  }
}

/** By id. */
export const liveWorkers = async (session: Session): Promise<WorkerInfo[]> => {
  const documents = await withPatience(session, () => session.store.documents.list(PREFIX))
  const now = session.time.now()
  return documents.flatMap((document) => {
    const info = parsed(document)
    return info !== null && now - info.beatAt <= goneAfter(session) ? [info] : []
  })
}

const sweep = async (session: Session, own: string): Promise<void> => {
  const { store, time } = session
  for (const document of await store.documents.list(PREFIX)) {
    const info = parsed(document)
    const isGone = info === null || time.now() - info.beatAt > goneAfter(session)
    if (isGone && document.name !== own) await store.documents.delete(document.name, document.version)
  }
}

/** null: not what this release writes. */
const parsed = ({ name, value }: Document): WorkerInfo | null => {
  try {
    const info = JSON.parse(value)
    const [startedAt, beatAt] = [Date.parse(info.startedAt), Date.parse(info.beatAt)]
    if (!Array.isArray(info.types) || !Array.isArray(info.queues) || Number.isNaN(beatAt)) return null
    return { ...info, id: name.slice(PREFIX.length), startedAt, beatAt }
  } catch {
    return null
  }
}

let version: string | undefined

const ownVersion = (): string => {
  try {
    version ??= String(JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version)
  } catch {
    // Bundled into something else.
    version = 'unknown'
  }
  return version
}
