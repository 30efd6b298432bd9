/** The network between processes and the store. A request is lost, late or doubled, a reply is lost; the store applies what arrives. */
import type { Random } from '../../src/testing/random.ts'
import type { Host } from './host.ts'
import type { Kernel } from './kernel.ts'
import type { Marks } from './marks.ts'
import type { Fault, Settings } from './settings.ts'
import type { Trace } from './trace.ts'

/** Why a call has no answer of the store. */
export type NoAnswer = 'timeout' | 'reset' | 'refused'

export interface Request<T> {
  readonly host: Host
  readonly name: string
  /** For the trace. */
  readonly what: string
  /** What the store does when the request arrives. */
  apply(): Promise<T>
  /** The error that the caller's driver makes of it. */
  failed(why: NoAnswer): unknown
  /** Faults that are answers of the store, before or instead of applying. */
  readonly refusals?: readonly [fault: Fault, answer: () => unknown][]
}

export class Wire {
  readonly #kernel: Kernel
  readonly #settings: Settings
  readonly #random: Random
  readonly #latency: Random
  readonly #marks: Marks
  readonly #trace: Trace
  /** By process: until when no packet passes. */
  readonly #cutUntil = new Map<Host, number>()
  readonly #cutListeners = new Map<Host, readonly ((isCut: boolean) => void)[]>()
  #stalledUntil = 0
  /** There are no faults, before the story and after it. */
  isHealed = true
  /** Requests that are on their way for longer than their caller waits. */
  readonly #overdue = new Set<() => void>()
  calls = 0
  faults = 0

  constructor(kernel: Kernel, settings: Settings, marks: Marks, trace: Trace) {
    this.#kernel = kernel
    this.#settings = settings
    this.#random = kernel.random('wire faults')
    this.#latency = kernel.random('latency')
    this.#marks = marks
    this.#trace = trace
  }

  cut(host: Host, duration: number): void {
    const until = this.#kernel.now + duration
    this.#cutUntil.set(host, until)
    this.#tell(host, true)
    this.#kernel.after(duration, () => {
      if (this.#cutUntil.get(host) === until) this.#restore(host)
    })
  }

  #restore(host: Host): void {
    this.#cutUntil.delete(host)
    this.#tell(host, false)
  }

  /** Called when the connection of a process is cut and when it is back. */
  onCut(host: Host, listener: (isCut: boolean) => void): void {
    this.#cutListeners.set(host, [...(this.#cutListeners.get(host) ?? []), listener])
  }

  #tell(host: Host, isCut: boolean): void {
    for (const listener of this.#cutListeners.get(host) ?? []) listener(isCut)
  }

  stall(duration: number): void {
    this.#stalledUntil = this.#kernel.now + duration
  }

  heal(): void {
    this.isHealed = true
    for (const host of [...this.#cutUntil.keys()]) this.#restore(host)
    this.#stalledUntil = this.#kernel.now
    // What is still on its way arrives soon: to wait for it would only cost steps.
    for (const arrive of this.#overdue) this.#kernel.after(this.latency(), arrive)
  }

  get overdue(): number {
    return this.#overdue.size
  }

  #sendLate(delay: number, apply: () => void): void {
    const arrive = (): void => {
      if (this.#overdue.delete(arrive)) apply()
    }
    this.#overdue.add(arrive)
    this.#kernel.after(delay, arrive)
  }

  isCut(host: Host): boolean {
    return (this.#cutUntil.get(host) ?? 0) > this.#kernel.now
  }

  /** Whether this fault happens now. Every fault draws in every call, so that leaving one out does not move the others. */
  strikes(fault: Fault): boolean {
    const rate = this.#settings.faults[fault]
    const struck = this.#random.chance(rate) && !this.isHealed
    if (struck) {
      this.faults++
      this.#marks.hit(fault)
    }
    return struck
  }

  /** One way. */
  latency(): number {
    const [least, most] = this.#settings.latency
    // Mostly short, now and then long.
    return least + this.#latency.next() ** 3 * (most - least)
  }

  call<T>(request: Request<T>): Promise<T> {
    const { host, name, what } = request
    this.calls++
    const n = this.calls
    const at = `#${n} ${name}`
    this.#trace.line(host.name, `${at} ${what}`)
    const { deadline } = this.#settings
    const drops = this.strikes('drop-request')
    const loses = this.strikes('lose-reply')
    const isLate = this.strikes('late-request')
    const isRefused = this.strikes('refuse-connection')
    const isDoubled = this.strikes('duplicate-request')
    const isSlow = this.strikes('slow-request')
    const answers = (request.refusals ?? []).map(([fault, answer]) => (this.strikes(fault) ? answer : null))
    const extra = this.#random.next()
    return new Promise<T>((done, failed) => {
      let isOver = false
      /** In the process of the caller, unless it has died. */
      const settle = (how: () => void): void =>
        host.deliver(() => {
          if (isOver) return
          isOver = true
          cancel()
          how()
        })
      const cancel = host.after(deadline, () => {
        if (isOver) return
        isOver = true
        this.#trace.line(host.name, `${at}: no answer`)
        failed(request.failed('timeout'))
      })
      const fail = (delay: number, why: NoAnswer): void => {
        this.#kernel.after(delay, () =>
          settle(() => {
            this.#trace.line(host.name, `${at}: ${why}`)
            failed(request.failed(why))
          }),
        )
      }
      const reply = (how: () => void, result: string): void => {
        if (loses || this.isCut(host)) {
          this.#trace.line('store', `${at}: ${result}, and the reply is lost`)
          if (extra < 0.5) fail(this.latency() + extra * 200, 'reset')
          return
        }
        this.#kernel.after(this.latency(), () => {
          if (this.isCut(host)) return
          settle(() => {
            this.#trace.line(host.name, `${at}: ${result}`)
            how()
          })
        })
      }
      const apply = (isCopy: boolean): void => {
        if (this.#stalledUntil > this.#kernel.now) {
          this.#sendLate(this.#stalledUntil - this.#kernel.now + this.latency(), () => apply(isCopy))
          return
        }
        if (isOver && !isCopy) this.#marks.hit('a request applied after its caller gave up')
        this.#trace.line('store', at)
        request.apply().then(
          (value) => isCopy || reply(() => done(value), this.#trace.digest(value)),
          (error: unknown) => isCopy || reply(() => failed(error), String((error as Error).message)),
        )
      }
      if (isRefused) return fail(this.latency(), 'refused')
      if (drops || this.isCut(host)) {
        if (extra < 0.5) fail(this.latency() + extra * 500, 'reset')
        return
      }
      const answer = answers.find((one) => one !== null)
      if (answer) {
        this.#kernel.after(this.latency(), () => reply(() => failed(answer()), 'refused'))
        return
      }
      const delay = this.latency() + (isSlow ? extra * deadline : 0) + (isLate ? deadline + extra * 15_000 : 0)
      if (isLate) this.#sendLate(delay, () => apply(false))
      else this.#kernel.after(delay, () => apply(false))
      if (isDoubled) this.#kernel.after(delay + extra * 3_000, () => apply(true))
    })
  }
}
