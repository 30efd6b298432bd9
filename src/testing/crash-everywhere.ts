/** Runs a handler again and again, each time with one fault at one of its durable calls, and counts its effects. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { connect } from '../connect.ts'
import type { Task } from '../core/observe/task-view.ts'
import type { Client } from '../runtime/client.ts'
import type { Clock } from '../runtime/clock.ts'
import { defineTask, type TaskDefinition } from '../runtime/definition.ts'
import type { Handler, TaskContext } from '../runtime/handler.ts'
import { silentLogger } from '../runtime/telemetry/logger.ts'
import { openMemory } from '../store/memory/store.ts'
import type { Store } from '../store/store.ts'
import { drain } from './drain.ts'
import { FakeClock } from './fake-clock.ts'
import { type Fate, lossy } from './lossy-store.ts'

/**
 * What happens at one call of `ctx`, once:
 * - `crash before its write`: the process ends when it has run the step and before it is recorded.
 * - `crash after`: the process ends when the call has returned.
 * - `lost reply`: the write happens, and its reply is lost.
 * - `duplicate delivery`: another worker runs the task to its end, then this run goes on.
 * - `stolen lease`: this run goes on, and the task is run again.
 */
const FAULTS = ['crash before its write', 'crash after', 'lost reply', 'duplicate delivery', 'stolen lease'] as const
/** One of the faults of `crashEverywhere`. */
export type CrashFault = (typeof FAULTS)[number]

/** Call it where the handler changes another system. With a key, the other system is taken to ignore a repeat. */
export type Effect = (name: string, key?: string) => void

/** Options of `crashEverywhere`. */
export interface CrashOptions {
  /** By name: sent to the task whenever it waits for that signal. */
  readonly signals?: Readonly<Record<string, unknown>>
  /** Runs of one task before it counts as one that never ends. Default 100. */
  readonly mostRuns?: number
}

/** One thing that went wrong under one fault. */
export interface CrashFinding {
  readonly fault: CrashFault
  /** The call at which it happened: `step 'charge'`. */
  readonly at: string
  /** What is wrong: `effect 'charge' happened 2 times without a key`. */
  readonly problem: string
}

/** What `crashEverywhere` found. */
export interface CrashReport {
  /** How often the handler calls `ctx` in all runs of a task without faults. */
  readonly calls: number
  /** How many tasks were run with a fault. */
  readonly scenarios: number
  /** Empty if the handler is safe. */
  readonly findings: readonly CrashFinding[]
}

/** Makes the handler under test; `effect` counts what it does elsewhere. */
export type HandlerUnderTest<Parsed, Output, Input> = (effect: Effect) => Handler<Parsed, Output, Input>

/**
 * Runs the handler without a fault, and then once for each of its calls of `ctx` and each fault, on a memory store with virtual time. Reports effects
 * that happened more often than without the fault and had no key, and tasks that ended otherwise.
 */
export const crashEverywhere = async <Input, Parsed, Output>(
  what: string | TaskDefinition<Input, Parsed, Output>,
  handler: HandlerUnderTest<Parsed, Output, Input>,
  input: Input,
  options: CrashOptions = {},
): Promise<CrashReport> => {
  const definition = (typeof what === 'string' ? defineTask(what) : what) as TaskDefinition
  const play = (fault: Planned | null): Promise<Ending> =>
    new Scenario(
      definition,
      handler as unknown as HandlerUnderTest<unknown, unknown, unknown>,
      input,
      options,
      fault,
    ).play()
  const good = await play(null)
  const findings: CrashFinding[] = []
  let scenarios = 0
  for (const [n, at] of good.calls.entries())
    for (const fault of FAULTS) {
      scenarios++
      const bad = await play({ fault, n })
      for (const problem of compare(good, bad)) findings.push({ fault, at, problem })
    }
  return { calls: good.calls.length, scenarios, findings }
}

interface Planned {
  readonly fault: CrashFault
  /** The number of the call, from 0. */
  readonly n: number
}

interface Ending {
  /** The calls of `ctx`, in order. */
  readonly calls: readonly string[]
  /** By name of the effect. */
  readonly effects: ReadonlyMap<string, number>
  readonly end: string
}

const compare = (good: Ending, bad: Ending): string[] => {
  const problems: string[] = []
  for (const [name, times] of bad.effects) {
    const expected = good.effects.get(name) ?? 0
    if (times > expected) problems.push(`effect '${name}' happened ${times} times without a key, not ${expected}`)
  }
  for (const name of good.effects.keys()) if (!bad.effects.has(name)) problems.push(`effect '${name}' did not happen`)
  if (bad.end !== good.end) problems.push(`the task is ${bad.end}, not ${good.end}`)
  return problems
}

/** One client, which can end without a trace: none of its calls arrives any more, and no timer of it fires. */
class Process {
  isDead = false
  /** Decides what becomes of the next commit. */
  nextCommit: Fate = 'pass'
  readonly died = Promise.withResolvers<void>()

  open(store: Store, clock: FakeClock): Promise<Client> {
    const own: Clock = {
      wall: () => clock.wall(),
      mono: () => clock.mono(),
      after: (delay, tick) => (this.isDead ? () => {} : clock.after(delay, () => (this.isDead ? undefined : tick()))),
    }
    const plan = (call: string): Fate => {
      if (this.isDead) return 'silence'
      if (call !== 'commit') return 'pass'
      const fate = this.nextCommit
      this.nextCommit = 'pass'
      if (fate === 'silence') this.die()
      return fate
    }
    return connect(lossy(keptOpen(store), plan), { clock: own, random: clock.random, logger: silentLogger })
  }

  die(): void {
    this.isDead = true
    this.died.resolve()
  }
}

/** Several clients share the store. */
const keptOpen = (store: Store): Store =>
  new Proxy(store, {
    get(target, name) {
      if (name === 'close') return async () => {}
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })

const CALLS = new Set<string | symbol>(['step', 'sleep', 'waitFor', 'steps'])
const MOST_RUNS = 100
const STEP = 50

class Scenario {
  readonly #clock = new FakeClock()
  readonly #store: Store
  readonly #definition: TaskDefinition
  readonly #handler: Handler
  readonly #input: unknown
  readonly #options: CrashOptions
  readonly #planned: Planned | null
  readonly #calls: string[] = []
  /** By effect: the keys that were seen, and how often it had none. */
  readonly #effects = new Map<string, { readonly keys: Set<string>; unkeyed: number }>()
  #operator!: Client
  #id = ''
  /** Runs within runs: of a duplicate delivery. */
  #depth = 0

  constructor(
    definition: TaskDefinition,
    handler: HandlerUnderTest<unknown, unknown, unknown>,
    input: unknown,
    options: CrashOptions,
    planned: Planned | null,
  ) {
    this.#store = openMemory({ wall: () => this.#clock.wall() })
    this.#definition = definition
    this.#handler = handler((name, key) => this.#happened(name, key))
    this.#input = input
    this.#options = options
    this.#planned = planned
  }

  async play(): Promise<Ending> {
    this.#operator = await new Process().open(this.#store, this.#clock)
    // Faults must not use up the retries.
    const { id } = await this.#operator.submit(this.#definition, this.#input, { maxRetries: null, timeout: null })
    this.#id = id
    const end = await this.#untilEnd()
    await this.#passing(this.#operator.close())
    await this.#store.close()
    const counted = [...this.#effects].map(([name, { keys, unkeyed }]) => [name, keys.size + unkeyed] as const)
    return { calls: this.#calls, effects: new Map(counted), end }
  }

  #happened(name: string, key: string | undefined): void {
    const seen = this.#effects.get(name) ?? { keys: new Set(), unkeyed: 0 }
    if (key === undefined) seen.unkeyed++
    else seen.keys.add(key)
    this.#effects.set(name, seen)
  }

  /** Runs the task in one process after another until it has ended. */
  async #untilEnd(): Promise<string> {
    for (let runs = 0; runs < (this.#options.mostRuns ?? MOST_RUNS); runs++) {
      await this.#inProcess()
      const task = await this.#operator.get(this.#id)
      const signal = this.#awaited(task)
      // Its worker is gone: the same as after the lease has lapsed.
      if (task.status === 'running') await this.#operator.retry(this.#id)
      else if (task.status !== 'pending') return task.status
      else if (signal !== undefined) await this.#operator.signal(this.#id, signal, this.#options.signals![signal])
      else if (task.parked?.until === null) return `parked in step '${task.parked.step}' forever`
      else await this.#clock.advanceTo(Math.max(task.availableAt, this.#clock.wall()))
    }
    return 'never ended'
  }

  /** A signal that the task waits for and the test has. */
  #awaited({ parked }: Task): string | undefined {
    const { signals = {} } = this.#options
    return [parked?.signal, ...(parked?.signals ?? [])].find(
      (name) => name !== undefined && Object.hasOwn(signals, name),
    )
  }

  async #inProcess(): Promise<void> {
    const process = new Process()
    const client = await process.open(this.#store, this.#clock)
    const { queue } = await this.#operator.get(this.#id)
    const handler: Handler = (input, ctx) => this.#handler(input, this.#watched(ctx, process))
    const drained = drain(client, [[this.#definition, handler]], { queues: [queue] }).then(() => client.close())
    await this.#passing(Promise.race([drained, process.died.promise]))
  }

  /** Lets time pass until the promise is settled: retries of lost calls wait for a moment. The innermost run alone advances it. */
  async #passing(promise: Promise<unknown>): Promise<void> {
    const depth = ++this.#depth
    let isSettled = false
    const settled = promise.finally(() => (isSettled = true))
    settled.catch(() => {})
    while (!isSettled) {
      await nextTurn()
      if (this.#depth === depth) await this.#clock.settle()
      if (this.#depth === depth && !isSettled) await this.#clock.advance(STEP)
    }
    this.#depth--
    await settled
  }

  /** The same context, whose calls are counted and may meet the fault. */
  #watched(ctx: TaskContext, process: Process): TaskContext {
    return new Proxy(ctx, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target)
        if (typeof value !== 'function') return value
        if (!CALLS.has(name)) return value.bind(target)
        return (...args: unknown[]) => this.#call(String(name), args, () => value.apply(target, args), process)
      },
    })
  }

  async #call(name: string, args: readonly unknown[], run: () => Promise<unknown>, process: Process): Promise<unknown> {
    const n = this.#calls.push(name === 'steps' ? 'steps()' : `${name} '${String(args[0])}'`) - 1
    const fault = this.#planned?.n === n ? this.#planned.fault : null
    if (fault === 'lost reply') process.nextCommit = 'lose-reply'
    if (fault === 'crash before its write') process.nextCommit = 'silence'
    try {
      return await run()
    } finally {
      process.nextCommit = 'pass'
      if (fault === 'crash after') await gone(process)
      if (fault === 'duplicate delivery' && (await this.#take())) await this.#untilEnd()
      if (fault === 'stolen lease') await this.#take()
    }
  }

  /** False if the run is over already. */
  async #take(): Promise<boolean> {
    if ((await this.#operator.get(this.#id)).status !== 'running') return false
    await this.#operator.retry(this.#id)
    return true
  }
}

/** Never resolves: nothing of the process runs any more. */
const gone = (process: Process): Promise<never> => {
  process.die()
  return new Promise(() => {})
}
