/**
 * The connection to the store's thread: calls and their replies. If the thread dies, for example because its heap is full, the calls in
 * flight are rejected and a new thread is started, which must find the same store.
 */
import type { Worker } from 'node:worker_threads'
import { HoldfastError } from '../../core/errors.ts'
import { startThread } from '../threads/thread-file.ts'
import { asHoldfastError } from './errors.ts'
import type { Call, FromThread, Notice, PlainError, Reply, ThreadData, ToThread } from './protocol.ts'
import { codeOf } from './thread-code.ts'

interface Asked {
  resolve(value: unknown): void
  reject(error: HoldfastError): void
}

export interface LinkHost {
  /** Another process has written. */
  wake(): void
  /** A new thread has replaced one that died, and knows nothing yet. */
  restarted(): void
}

export interface LinkOptions {
  readonly path: string
  readonly create: boolean
  readonly identity: string
  /** Heap of the thread in MiB. Default: Node's default. */
  readonly heap: number | undefined
}

type Opened = Extract<FromThread, { kind: 'opened' }>

const openThread = async ({ heap, ...data }: LinkOptions): Promise<{ thread: Worker; opened: Opened }> => {
  const address = `sqlite:${data.path}`
  const code = await codeOf('thread', data.path)
  const thread = startThread(code, 'holdfast-sqlite', data satisfies ThreadData, { heap })
  const said = await new Promise<Extract<FromThread, { kind: 'opened' | 'refused' }>>((done, failed) => {
    thread.once('message', done)
    thread.once('error', (error) => failed(diedOf(address, error)))
  })
  if (said.kind === 'refused') throw asError(said.error)
  return { thread, opened: said }
}

export class ThreadLink {
  readonly created: boolean
  readonly identity: string
  readonly ahead: Opened['ahead']
  host: LinkHost = { wake: () => {}, restarted: () => {} }
  readonly #options: LinkOptions
  readonly #address: string
  readonly #asked = new Map<number, Asked>()
  /** null if it has died; the next call starts it again. */
  #thread: Worker | null = null
  #starting: Promise<void> | null = null
  /** Resolves when the closing thread has ended. */
  #closed: Promise<void> | null = null
  #n = 0

  private constructor(options: LinkOptions, thread: Worker, { created, identity, ahead }: Opened) {
    this.#options = { ...options, create: false }
    this.#address = `sqlite:${options.path}`
    this.created = created
    this.identity = identity
    this.ahead = ahead
    this.#follow(thread)
  }

  static async open(options: LinkOptions): Promise<ThreadLink> {
    const { thread, opened } = await openThread(options)
    return new ThreadLink(options, thread, opened)
  }

  get isClosed(): boolean {
    return this.#closed !== null
  }

  /** A number that no call uses. */
  nextNumber(): number {
    return ++this.#n
  }

  ask<T>(ask: Call): Promise<T> {
    if (this.#closed !== null) return Promise.reject(closedError(this.#address))
    if (this.#thread === null) return this.#restart().then(() => this.ask<T>(ask))
    const thread = this.#thread
    return new Promise<T>((resolve, reject) => {
      const n = this.nextNumber()
      this.#asked.set(n, { resolve: resolve as Asked['resolve'], reject })
      // An open store does not keep the process alive; a call in flight does.
      if (this.#asked.size === 1) thread.ref()
      thread.postMessage({ n, ask } satisfies ToThread)
    })
  }

  /** A notice to a dead thread is dropped: its successor learns everything from `restarted`. */
  tell(notice: Notice, transfer: Parameters<Worker['postMessage']>[1] = []): void {
    this.#thread?.postMessage(notice, transfer)
  }

  async close(): Promise<void> {
    this.#closed ??= this.#end()
    await this.#closed
  }

  async #end(): Promise<void> {
    await this.#starting?.catch(() => {})
    const thread = this.#thread
    if (thread === null) return
    // Otherwise the process could exit before the awaited close resolves.
    thread.ref()
    const ended = new Promise<void>((done) => thread.once('exit', () => done()))
    thread.postMessage({ notice: 'close' } satisfies Notice)
    await ended
  }

  #follow(thread: Worker): void {
    this.#thread = thread
    thread.on('message', (message: FromThread) => this.#receive(message))
    thread.once('error', (error) => this.#died(thread, error))
    thread.once('exit', () => this.#died(thread, null))
    if (this.#asked.size === 0) thread.unref()
  }

  #receive(message: FromThread): void {
    if (message.kind === 'wake') this.host.wake()
    else if (message.kind === 'replies') for (const reply of message.replies) this.#reply(reply)
  }

  #reply(reply: Reply): void {
    const asked = this.#asked.get(reply.n)
    this.#asked.delete(reply.n)
    if (this.#asked.size === 0 && this.#closed === null) this.#thread?.unref()
    if ('error' in reply) asked?.reject(asError(reply.error))
    else asked?.resolve(reply.value)
  }

  #died(thread: Worker, cause: Error | null): void {
    if (this.#thread !== thread) return
    this.#thread = null
    const error = this.#closed === null ? diedOf(this.#address, cause) : closedError(this.#address)
    for (const { reject } of this.#asked.values()) reject(error)
    this.#asked.clear()
    // Restarted at once, because leases are renewed there.
    if (this.#closed === null) this.#restart().catch(() => {})
  }

  #restart(): Promise<void> {
    this.#starting ??= this.#startAgain().finally(() => {
      this.#starting = null
    })
    return this.#starting
  }

  async #startAgain(): Promise<void> {
    const { thread, opened } = await openThread(this.#options)
    if (opened.identity !== this.identity) {
      thread.postMessage({ notice: 'close' } satisfies Notice)
      throw new HoldfastError(
        'STORE_IDENTITY_CHANGED',
        `${this.#address} was deleted or replaced by another store while it was open`,
      )
    }
    this.#follow(thread)
    this.host.restarted()
  }
}

export const closedError = (address: string): HoldfastError => new HoldfastError('STORE_CLOSED', `${address} is closed`)

/** It is unclear whether the calls in flight took effect. */
const diedOf = (address: string, cause: Error | null): HoldfastError => {
  const known = cause === null ? null : asHoldfastError(cause, address)
  if (known !== null && known.code !== 'INTERNAL') return known
  const isFull = (cause as NodeJS.ErrnoException | null)?.code === 'ERR_WORKER_OUT_OF_MEMORY'
  const why = isFull ? 'its heap was full (give Node more with --max-old-space-size)' : (cause?.message ?? 'it ended')
  return new HoldfastError(
    'STORE_UNAVAILABLE',
    `${address}: the store's thread died: ${why}. It is started again`,
    {},
    cause ?? undefined,
  )
}

const asError = ({ code, message, details }: PlainError): HoldfastError => new HoldfastError(code, message, details)
