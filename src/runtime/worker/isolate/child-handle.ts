/** The worker's view of one child: whether it is ready, what it runs, whether it is dead. */
import { HoldfastError } from '../../../core/errors.ts'
import type { AbortReason } from '../../handler.ts'
import { errorOf } from './errors.ts'
import type { Isolation } from './options.ts'
import type { FromChild, ToChild } from './protocol.ts'
import { type Channel, startChild } from './start.ts'

type RunMessage = Extract<ToChild, { readonly kind: 'run' }>
type OfRun = Extract<FromChild, { readonly run: number }>
type Ended = Extract<FromChild, { readonly kind: 'returned' }>

export interface RunListener {
  progress(text: string): void
  log(message: Extract<FromChild, { readonly kind: 'log' }>): void
  called(message: Extract<FromChild, { readonly kind: 'call' }>): void
  verdict(message: Extract<FromChild, { readonly kind: 'verdict' }>): void
}

interface Current {
  readonly run: number
  readonly listener: RunListener
  returned(message: Ended): void
  threw(error: unknown): void
}

export class ChildHandle {
  readonly isolation: Isolation
  /** Rejects if the child dies first. */
  readonly ready: Promise<void>
  /** Never rejects. */
  readonly dead: Promise<void>
  /** Monotonic: unused since then. */
  idleSince = 0
  readonly #channel: Channel
  readonly #crashedIdle: (error: HoldfastError) => void
  readonly #isReady = Promise.withResolvers<void>()
  readonly #isDead = Promise.withResolvers<void>()
  #isUsable = true
  #current: Current | null = null
  /** The last uncaught error. */
  #crash: Error | undefined

  /** `crashedIdle` is called if the child dies of an error while it runs nothing, so that no task can report it. */
  constructor(isolation: Isolation, crashedIdle: (error: HoldfastError) => void) {
    this.isolation = isolation
    this.#crashedIdle = crashedIdle
    this.ready = this.#isReady.promise
    this.dead = this.#isDead.promise
    this.ready.catch(() => {})
    this.#channel = startChild(isolation, {
      heard: (message) => this.#heard(message),
      exited: (how) => this.#exited(how),
    })
  }

  /** Neither dead nor being killed. */
  get isUsable(): boolean {
    return this.#isUsable
  }

  /** Settles like the handler; rejects with HANDLER_CRASHED if the child dies. After a kill it settles only when the child is dead. */
  run(message: RunMessage, listener: RunListener): Promise<Ended> {
    return new Promise((returned, threw) => {
      this.#current = { run: message.run, listener, returned, threw }
      this.#channel.send(message)
    })
  }

  /** To a run that is not over. */
  send(message: ToChild): void {
    if (this.#isUsable && this.#current?.run === message.run) this.#channel.send(message)
  }

  abort(reason: AbortReason): void {
    if (this.#current !== null) this.#channel.send({ kind: 'abort', run: this.#current.run, reason })
  }

  kill(): void {
    this.#isUsable = false
    this.#channel.kill()
  }

  #heard(message: FromChild): void {
    if (message.kind === 'ready') this.#isReady.resolve()
    else if (message.kind === 'crashed') {
      this.#isUsable = false
      this.#crash = errorOf(message.error)
      // Messages of a run that is over or being killed are ignored.
    } else if (this.#current?.run === message.run && this.#isUsable) this.#heardOf(this.#current, message)
  }

  #heardOf({ listener, returned, threw }: Current, message: OfRun): void {
    if (message.kind === 'progress') listener.progress(message.text)
    else if (message.kind === 'log') listener.log(message)
    else if (message.kind === 'call') listener.called(message)
    else if (message.kind === 'verdict') listener.verdict(message)
    else {
      this.#current = null
      if (message.kind === 'returned') returned(message)
      else threw(errorOf(message.error))
    }
  }

  #exited(how: string): void {
    this.#isUsable = false
    const { kind } = this.isolation
    const crash = this.#crash === undefined ? how : `${how}: ${this.#crash.message}`
    const error = new HoldfastError('HANDLER_CRASHED', `the handler's ${kind} ${crash}`, {}, this.#crash)
    this.#isReady.reject(error)
    if (this.#current === null && this.#crash !== undefined) this.#crashedIdle(error)
    this.#current?.threw(error)
    this.#current = null
    this.#isDead.resolve()
  }
}
