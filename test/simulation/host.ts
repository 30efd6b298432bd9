/** A simulated process with its own clocks, timers and random numbers. It can be paused, and it can die between any two events. */
import * as asyncHooks from 'node:async_hooks'
import { AsyncLocalStorage } from 'node:async_hooks'
import crypto from 'node:crypto'
import diagnosticsChannel from 'node:diagnostics_channel'
import os from 'node:os'
import path from 'node:path'
import url from 'node:url'
import type { Random } from '../../src/testing/random.ts'
import type { Holdfast, Program, World } from './bundle.ts'
import type { Cancel, Kernel } from './kernel.ts'

/** The wall clock of every machine when a seed begins. */
export const START = Date.UTC(2026, 0, 28, 12)

/** The clocks of one machine. Processes on the same machine share it. */
export class Machine {
  readonly #kernel: Kernel
  /** How much faster than true time its crystal runs, as a fraction. */
  readonly drift: number
  /** How far its wall clock is off; changed by steps. */
  offset: number
  /** How long it has slept before now. */
  #slept = 0
  #sleepsFrom = 0
  #sleepsUntil = 0

  constructor(kernel: Kernel, { drift = 0, offset = 0 } = {}) {
    this.#kernel = kernel
    this.drift = drift
    this.offset = offset
  }

  wall(): number {
    return START + Math.floor(this.#kernel.now * (1 + this.drift) + this.offset)
  }

  /** Its monotonic clock stands still; its wall clock goes on. Whoever calls this pauses its processes. */
  sleepFor(duration: number): void {
    this.#slept += this.#sleepsUntil - this.#sleepsFrom
    this.#sleepsFrom = this.#kernel.now
    this.#sleepsUntil = this.#kernel.now + duration
  }

  wake(): void {
    this.#sleepsUntil = Math.min(this.#sleepsUntil, this.#kernel.now)
  }

  /** How much longer it sleeps. */
  get sleepsFor(): number {
    return Math.max(0, this.#sleepsUntil - this.#kernel.now)
  }

  mono(): number {
    const slept = this.#slept + Math.min(this.#kernel.now, this.#sleepsUntil) - this.#sleepsFrom
    return (this.#kernel.now - slept) * (1 + this.drift)
  }

  /** True milliseconds for so many of its own. */
  length(milliseconds: number): number {
    return milliseconds / (1 + this.drift)
  }
}

type State = 'up' | 'paused' | 'dead'

interface Timer {
  cancel: Cancel
  hasRef(): boolean
  ref(): Timer
  unref(): Timer
  refresh(): Timer
  [Symbol.dispose](): void
  [Symbol.toPrimitive](): number
}

export class Host {
  readonly name: string
  readonly kernel: Kernel
  readonly machine: Machine
  readonly holdfast: Holdfast
  readonly random: Random
  state: State = 'up'
  readonly died: Promise<void>
  /** Drivers of simulated servers, by the name of their package. */
  readonly provides = new Map<string, unknown>()
  #die!: () => void
  /** What arrived while it was paused, in order. */
  #held: (() => void)[] = []
  /** What the globals of its code are in this process. */
  readonly own: Own
  readonly #remembered = new Map<() => unknown, unknown>()
  readonly #immediates: ({ run: () => void } | null)[] = []
  #timers = 0
  /** Timers of one process that are due at the same instant fire in the order in which they were set. */
  readonly #salt: number

  constructor(kernel: Kernel, program: Program, name: string, machine: Machine) {
    this.name = name
    this.died = new Promise((done) => {
      this.#die = done
    })
    this.kernel = kernel
    this.machine = machine
    this.random = kernel.random(`process ${name}`)
    this.#salt = this.random.below(2 ** 32)
    this.own = this.#own()
    this.holdfast = this.enter(() => program(WORLD))
  }

  /** Calls code of this process: what it awaits, and what it sets timers for, belongs to the process too. */
  enter<T>(work: () => T): T {
    return running.run(this, work)
  }

  /** What a module remembers in this process. */
  remembered<State>(make: () => State): State {
    if (!this.#remembered.has(make)) this.#remembered.set(make, make())
    return this.#remembered.get(make) as State
  }

  /** Runs `work` in this process: at once, or when it is no longer paused, or never if it has died. */
  deliver(work: () => void): void {
    if (this.state === 'up') this.enter(work)
    else if (this.state === 'paused') this.#held.push(work)
  }

  /** SIGKILL: no timer fires and no reply arrives any more. Requests on their way still reach the store. */
  kill(): void {
    this.state = 'dead'
    this.#held = []
    this.#die()
  }

  /** SIGSTOP, and SIGCONT after a while. */
  pause(duration: number): void {
    if (this.state !== 'up') return
    this.state = 'paused'
    this.kernel.after(duration, () => this.resume())
  }

  resume(): void {
    if (this.state !== 'paused') return
    this.state = 'up'
    const held = this.#held
    this.#held = []
    for (const work of held) this.kernel.after(0, () => this.deliver(work))
  }

  /** By this process' own clock. */
  sleep(delay: number): Promise<void> {
    return new Promise((done) => this.after(delay, done))
  }

  after(delay: number, run: () => void): Cancel {
    return this.kernel.after(this.machine.length(delay), () => this.deliver(run), this.#salt)
  }

  /** In the order of the calls, each with a turn of its own. */
  #soon(run: () => void): { run: () => void } {
    const entry = { run }
    this.#immediates.push(entry)
    this.kernel.after(0, () => this.deliver(() => this.#immediates.shift()?.run()))
    return entry
  }

  #timer(delay: unknown, run: () => void): Timer {
    // As in Node: whole milliseconds, at least one.
    const length = Math.max(1, Math.trunc(Number(delay)) || 1)
    const set = (): Cancel => this.after(length, run)
    const n = ++this.#timers
    const timer: Timer = {
      cancel: set(),
      hasRef: () => true,
      ref: () => timer,
      unref: () => timer,
      refresh: () => {
        timer.cancel()
        timer.cancel = set()
        return timer
      },
      [Symbol.dispose]: () => timer.cancel(),
      [Symbol.toPrimitive]: () => n,
    }
    return timer
  }

  #own(): Own {
    const { machine, random } = this
    const bytes = (size: number): Buffer => {
      const made = Buffer.alloc(size)
      for (let i = 0; i < size; i++) made[i] = random.below(256)
      return made
    }
    const fill = <T extends NodeJS.ArrayBufferView>(array: T): T => {
      bytes(array.byteLength).copy(new Uint8Array(array.buffer, array.byteOffset, array.byteLength))
      return array
    }
    return {
      setTimeout: (run: Callback, delay?: number, ...args: unknown[]): Timer => this.#timer(delay, () => run(...args)),
      setInterval: (run: Callback, delay?: number, ...args: unknown[]): Timer => {
        const timer = this.#timer(delay, () => {
          timer.refresh()
          run(...args)
        })
        return timer
      },
      setImmediate: (run: Callback, ...args: unknown[]): { run: () => void } => this.#soon(() => run(...args)),
      mono: () => machine.mono(),
      wall: () => machine.wall(),
      chance: () => random.next(),
      pid: 1_000 + random.below(30_000),
      bytes,
      fill,
      uuid: () => {
        const made = bytes(16)
        made[6] = (made[6]! & 0x0f) | 0x40
        made[8] = (made[8]! & 0x3f) | 0x80
        return made.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
      },
    }
  }
}

type Callback = (...args: unknown[]) => void

/** What differs from process to process. */
interface Own {
  setTimeout(run: Callback, delay?: number, ...args: unknown[]): Timer
  setInterval(run: Callback, delay?: number, ...args: unknown[]): Timer
  setImmediate(run: Callback, ...args: unknown[]): { run: () => void }
  mono(): number
  wall(): number
  chance(): number
  readonly pid: number
  bytes(size: number): Buffer
  fill<T extends NodeJS.ArrayBufferView>(array: T): T
  uuid(): string
}

/** The process whose code is running. */
const running = new AsyncLocalStorage<Host>()

const host = (): Host => {
  const found = running.getStore()
  if (found === undefined) throw new Error('code of a simulated process runs outside of every process: see Host.enter')
  return found
}
const own = (): Own => host().own

const dateOf = (now: () => number): DateConstructor =>
  class extends Date {
    constructor(...given: unknown[]) {
      super(...((given.length === 0 ? [now()] : given) as [number]))
    }

    static override now(): number {
      return now()
    }
  } as DateConstructor

/** A module whose members may be imported, but not used. */
const refusing = (name: string): object =>
  new Proxy(
    {},
    {
      get(_, member) {
        if (member === 'parentPort') return null
        return class {
          constructor() {
            throw new Error(`${name}.${String(member)} is not simulated`)
          }
        }
      },
    },
  )

const clear = (timer?: Timer | null): void => timer?.cancel()

const worldOfAll = (): World => {
  const performance = { now: () => own().mono(), timeOrigin: START }
  const math = Object.create(Math, { random: { value: () => own().chance() } }) as typeof Math
  const hrtime = Object.assign(
    () => {
      throw new Error('hrtime() is not simulated: use hrtime.bigint()')
    },
    { bigint: () => BigInt(Math.floor(own().mono() * 1e6)) },
  )
  const process = {
    get pid() {
      return own().pid
    },
    env: {},
    argv: [],
    execArgv: [],
    platform: 'linux',
    versions: globalThis.process.versions,
    version: globalThis.process.version,
    stderr: { write: () => true },
    hrtime,
    // Its code takes no time.
    cpuUsage: () => ({ user: 0, system: 0 }),
    on: () => {},
    off: () => {},
    memoryUsage: () => ({ rss: 0, heapUsed: 0 }),
  }
  const randomBytes = (size: number): Buffer => own().bytes(size)
  const randomFillSync = <T extends NodeJS.ArrayBufferView>(array: T): T => own().fill(array)
  const randomUUID = (): string => own().uuid()
  const missing = (name: string): never => {
    throw Object.assign(new Error(`Cannot find module '${name}'`), { code: 'MODULE_NOT_FOUND' })
  }
  const modules: Readonly<Record<string, unknown>> = {
    'node:async_hooks': asyncHooks,
    'node:diagnostics_channel': diagnosticsChannel,
    'node:path': path,
    'node:url': url,
    'node:os': { ...os, hostname: () => 'host' },
    'node:process': process,
    'node:crypto': { ...crypto, randomBytes, randomFillSync, randomUUID },
    // Threads, files and sockets would be real. What reaches for them fails.
    'node:worker_threads': refusing('node:worker_threads'),
    'node:child_process': refusing('node:child_process'),
    'node:fs': refusing('node:fs'),
  }
  const world = {
    setTimeout: (...args: Parameters<Own['setTimeout']>): Timer => own().setTimeout(...args),
    clearTimeout: clear,
    setInterval: (...args: Parameters<Own['setInterval']>): Timer => own().setInterval(...args),
    clearInterval: clear,
    setImmediate: (...args: Parameters<Own['setImmediate']>): { run: () => void } => own().setImmediate(...args),
    clearImmediate: (entry?: { run: () => void }): void => {
      if (entry !== undefined) entry.run = () => {}
    },
    performance,
    Date: dateOf(() => own().wall()),
    Math: math,
    process,
    crypto: { randomUUID, getRandomValues: randomFillSync },
    fetch: () => {
      throw new Error('fetch is not simulated')
    },
    console: { log() {}, info() {}, warn() {}, error() {}, debug() {} },
    require: (name: string): unknown => modules[name] ?? host().provides.get(name) ?? missing(name),
    perProcess:
      <State>(make: () => State) =>
      (): State =>
        host().remembered(make),
  }
  const globals = Object.fromEntries(Object.entries(world).map(([name, value]) => [name, { value }]))
  return { ...world, globalThis: Object.create(globalThis, globals) as object }
}

/** The same for all processes: each global asks which process is running. */
const WORLD = worldOfAll()
