/** One seed: processes come and go, requests get lost, operators interfere; then everything heals, drains, and is checked. */

import { isTerminal, type TaskRecord } from '../../src/core/task.ts'
import type { TaskContext } from '../../src/runtime/handler.ts'
import type { Worker } from '../../src/runtime/worker/worker.ts'
import type { Random } from '../../src/testing/random.ts'
import type { Program } from './bundle.ts'
import { type Caller, Calls } from './callers.ts'
import { checkEnd } from './checker/at-the-end.ts'
import { Checker } from './checker/checker.ts'
import type { Violation } from './checker/invariants.ts'
import { Witness } from './checker/witness.ts'
import { handlersOf, QUEUES, TYPE_NAMES, type Type } from './handlers.ts'
import { Host, Machine } from './host.ts'
import { Kernel } from './kernel.ts'
import { Marks } from './marks.ts'
import { Nemesis } from './nemesis.ts'
import { Operators } from './operators.ts'
import { Producers } from './producers.ts'
import { openSimulated } from './profiles.ts'
import { Relocation } from './relocation.ts'
import { drawSettings, type Profile, type Reduction, type Settings } from './settings.ts'
import type { SimulatedStore } from './simulated-store.ts'
import { Trace } from './trace.ts'
import { Wire } from './wire.ts'

export interface Outcome {
  readonly seed: number
  readonly settings: Settings
  readonly violations: readonly Violation[]
  readonly steps: number
  readonly tasks: number
  readonly runs: number
  readonly calls: number
  readonly faults: number
  readonly hash: string
  readonly marks: ReadonlyMap<string, number>
  /** Only when asked for. */
  readonly lines: readonly string[] | null
}

export interface Order {
  readonly seed: number
  readonly profile: Profile
  readonly reduction?: Reduction
  readonly keepLines?: boolean
}

/** Virtual milliseconds in which everything must have ended once all faults are over. */
const DRAIN = 600_000
const LOOK_EVERY = 1_000
/** Faults go on until so much has happened. */
const LEAST_STEPS = 2_000
const MOST_EXTENSIONS = 600
/** Enough that a task which waits without faults waits for no free slot. */
const HEALTHY_CONCURRENCY = 12

export const simulate = (program: Program, order: Order): Promise<Outcome> => new Simulation(program, order).run()

/** A process of workers that is started again when it dies. */
export interface WorkerProcess extends Caller {
  readonly worker: Worker
}

/** What a worker of a simulated process serves. */
interface Served {
  readonly types: readonly Type[]
  readonly queues: readonly string[]
  readonly concurrency?: number
  /** Of its store. */
  readonly checker?: Checker
}

export class Simulation {
  readonly kernel: Kernel
  readonly settings: Settings
  readonly random: Random
  readonly trace: Trace
  readonly marks = new Marks()
  readonly witness = new Witness()
  readonly checker: Checker
  readonly wire: Wire
  readonly calls: Calls
  readonly store: SimulatedStore
  /** To where everything moves; null in the other profiles. */
  readonly relocation: Relocation | null
  readonly machines: readonly Machine[]
  readonly workers: (WorkerProcess | null)[] = []
  /** Every process that lives. */
  readonly hosts = new Set<Host>()
  isHealed = false
  readonly #program: Program
  readonly #leastSteps: number
  #born = 0

  constructor(program: Program, { seed, profile, reduction, keepLines = false }: Order) {
    this.#program = program
    this.#leastSteps = reduction === undefined || Object.keys(reduction).length === 0 ? LEAST_STEPS : 0
    this.kernel = new Kernel(seed)
    this.settings = drawSettings(this.kernel, profile, reduction)
    this.random = this.kernel.random('workload')
    this.trace = new Trace(this.kernel, keepLines)
    this.trace.line('settings', JSON.stringify(this.settings))
    this.checker = new Checker(this.kernel, this.witness, this.marks, this.trace)
    // Where the process decides and the store only compares, a decision arrives as late as its request.
    if (profile === 's3' || profile === 'nats') {
      this.checker.lateBound = this.settings.deadline + 20_000
      this.checker.limits.countsEarlierClaims = false
    } else this.checker.limits.ratesAreExact = !this.settings.isOneMachine || this.settings.faults['step-clock'] === 0
    // On one machine every clock steps at once, and what was stamped before the step has the old time.
    if (this.settings.isOneMachine && this.settings.faults['step-clock'] > 0) this.checker.clockBound = 90_000
    this.wire = new Wire(this.kernel, this.settings, this.marks, this.trace)
    this.calls = new Calls(this.checker, this.trace)
    const { isOneMachine, skew, drift } = this.settings
    const random = this.kernel.random('machines')
    const server = new Machine(this.kernel)
    this.machines = isOneMachine
      ? [server]
      : [
          server,
          ...[1, 2, 3].map(
            () =>
              new Machine(this.kernel, {
                offset: Math.round((random.next() - 0.5) * 2 * skew),
                drift: (random.next() - 0.5) * 2 * drift,
              }),
          ),
        ]
    const { kernel, settings, wire, checker, marks, trace } = this
    const parts = { kernel, program, settings, wire, checker, marks, trace, machine: server }
    this.store = openSimulated(parts)
    this.relocation = profile === 'move' ? new Relocation(this, parts) : null
  }

  async run(): Promise<Outcome> {
    const unhandled = (reason: unknown): void =>
      this.checker.violate(
        'I15',
        `a rejection is not handled: ${reason instanceof Error ? reason.stack : String(reason)}`,
      )
    process.on('unhandledRejection', unhandled)
    try {
      return await this.#run()
    } finally {
      process.off('unhandledRejection', unhandled)
    }
  }

  async #run(): Promise<Outcome> {
    const { kernel, settings } = this
    const story = this.#story()
    let isOver = false
    let broken: unknown = null
    story.then(
      () => {
        isOver = true
      },
      (error: unknown) => {
        broken = error
        isOver = true
      },
    )
    await kernel.run(settings.faultyFor + DRAIN * 2, () => isOver || this.checker.violations.length > 0)
    if (broken !== null) throw broken
    if (!isOver && this.checker.violations.length === 0)
      this.checker.violate('I10', 'the simulation did not end: something waits for ever')
    for (const host of this.hosts) host.kill()
    return {
      seed: kernel.seed,
      settings,
      violations: this.checker.violations,
      steps: kernel.steps,
      tasks: this.checker.everSeen.size,
      runs: this.witness.begun,
      calls: this.wire.calls,
      faults: this.wire.faults,
      hash: this.trace.hash(),
      marks: this.marks.hits,
      lines: this.trace.lines,
    }
  }

  async #story(): Promise<void> {
    const { kernel, settings, checker } = this
    const first = this.host('first')
    await first.enter(() => this.store.prepare(first))
    await first.enter(async () => this.relocation?.store.prepare(first))
    first.kill()
    const operators = new Operators(this)
    await operators.prepare()
    this.wire.isHealed = false
    const producers = new Producers(this)
    const nemesis = new Nemesis(this)
    for (let i = 0; i < settings.workers; i++) this.#keepWorking(i)
    if (settings.hasMonitor) void this.#monitor()
    producers.start()
    operators.start()
    nemesis.start()
    this.relocation?.start()
    await kernel.sleep(settings.faultyFor)
    for (let more = 0; kernel.steps < this.#leastSteps && more < MOST_EXTENSIONS; more++) await kernel.sleep(LOOK_EVERY)
    await this.#heal()
    await this.#startHealthyWorkers()
    const admin = await this.connected('admin')
    // What an operator asked for before may still take effect.
    while (this.wire.overdue > 0 || this.calls.pending.length > 0) await kernel.sleep(LOOK_EVERY)
    await operators.restore(admin)
    this.#watchRecovery(this.store, checker)
    let isDrained = false
    void operators.answer(admin, checker, () => isDrained)
    const { relocation } = this
    let last = admin
    if (relocation !== null) {
      await relocation.done(DRAIN)
      await this.#startHealthyWorkers(relocation.store, relocation.checker)
      last = await this.connected('admin', relocation.store)
      await operators.restore(last)
      this.#watchRecovery(relocation.store, relocation.checker)
      void operators.answer(last, relocation.checker, () => isDrained)
    }
    await this.#drained(
      () => producers.isDone && this.calls.pending.length === 0 && (relocation === null || relocation.isQuiet),
    )
    isDrained = true
    this.calls.mustHaveEnded()
    if (relocation === null) await operators.checkSchedules([admin], [checker])
    else await operators.checkSchedules([last, admin], [checker, relocation.checker])
    for (const what of await this.store.broken()) checker.violate('I8', what)
    const left = await this.store.all()
    checkEnd({
      checker,
      tasks: relocation === null ? left : await relocation.all(left),
      mayExist: (task) => task.scheduleId !== null || task.replayOf !== null || producers.isChild(task),
      poisonType: 'killer',
      isRemoved: (id) => checker.removed.has(id) || (relocation?.isRemoved(id) ?? false),
    })
  }

  // ── processes ────────────────────────────────────────────────────────────────────────────────────────────────

  /** A new process, on one of the machines. */
  host(kind: string): Host {
    const machine = this.machines.length === 1 ? this.machines[0]! : this.machines[1 + this.random.below(3)]!
    const host = new Host(this.kernel, this.#program, `${kind}-${++this.#born}`, machine)
    this.hosts.add(host)
    if (machine.sleepsFor > 0) host.pause(machine.sleepsFor)
    void host.died.then(() => this.hosts.delete(host))
    return host
  }

  /** Connects as a program does that tries again until the store answers. Never resolves if the process dies. */
  async connect(host: Host, store = this.store): Promise<Caller> {
    for (;;) {
      const outcome = await this.calls.run({ host }, 'connect', async () =>
        host.holdfast.connect(await store.open(host), { logger: SILENT, name: host.name }),
      )
      if (outcome.kind === 'ok') return { host, client: outcome.value }
      await host.sleep(500)
    }
  }

  /** A connected process of this kind, after as many as died on the way. */
  async connected(kind: string, store = this.store): Promise<Caller> {
    for (;;) {
      const host = this.host(kind)
      const caller = await Promise.race([this.connect(host, store), host.died])
      if (caller !== undefined) return caller
    }
  }

  /** The same process, or another one in its place if it has died. */
  async living(caller: Caller, kind: string): Promise<Caller> {
    return caller.host.state === 'dead' ? this.connected(kind) : caller
  }

  /** Starts a process of workers, and another one whenever it has died. */
  #keepWorking(place: number): void {
    this.workers[place] = null
    const host = this.host('worker')
    const some = TYPE_NAMES.filter(() => this.random.chance(0.6))
    const types = this.random.chance(0.7) || some.length === 0 ? TYPE_NAMES : some
    const queues = this.random.chance(0.7) ? QUEUES : [this.random.pick(QUEUES)]
    const begin = async (): Promise<void> => {
      const caller = await this.connect(host)
      const worker = this.started(() => host.enter(() => this.startWorker(caller, { types, queues })))
      if (worker === null) host.kill()
      else this.workers[place] = { ...caller, worker }
    }
    void begin()
    void host.died.then(() => {
      if (!this.isHealed) this.kernel.after(this.random.next() * 3_000, () => this.isHealed || this.#keepWorking(place))
    })
  }

  startWorker(
    { host, client }: Caller,
    { types, queues, concurrency = this.settings.concurrency, checker = this.checker }: Served,
  ): Worker {
    const { settings, witness, marks, trace } = this
    const id = `${host.name}/w`
    checker.served.set(id, { queues, types })
    const handlers = handlersOf({
      host,
      random: this.random,
      witness,
      checker,
      marks,
      trace,
      isHealed: () => this.isHealed,
      childOf: (parent, ctx) => this.#child(parent, ctx),
    })
    const worker = client.worker({
      id,
      queues,
      concurrency,
      leaseTtl: { milliseconds: settings.leaseTtl },
      pollInterval: { milliseconds: settings.pollInterval },
      stopTimeout: '2s',
      stuckAfter: '3s',
    })
    for (const type of types) {
      if (type === 'batch') {
        worker.handleMany('batch', { size: 3, wait: '100ms' }, async (tasks, ctx) => {
          await host.sleep(this.random.next() * 500)
          return tasks.map((task) => {
            const own = ctx.of(task)
            const start = witness.start({
              id: task.id,
              fence: own.fence,
              worker: id,
              input: JSON.stringify(task.input),
              at: this.kernel.now,
            })
            if (this.random.chance(0.15) && !this.isHealed) return new Error('of one task')
            start.output = JSON.stringify('in a batch')
            marks.hit(tasks.length > 1 ? 'a batch of several' : 'a batch of one')
            return 'in a batch'
          })
        })
      } else worker.handle(type, handlers[type])
    }
    return worker.start()
  }

  async #child(parent: string, ctx: TaskContext): Promise<void> {
    this.witness.mayHave(parent, null)
    this.marks.hit('a handler submitted a task')
    await ctx.client.submit('quick', { of: parent }, { idempotencyKey: `child of ${parent}`, tags: { parent } })
  }

  async #monitor(): Promise<void> {
    const { host, client } = await this.connected('monitor')
    host.enter(() => client.monitor().start())
  }

  // ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────

  async #heal(): Promise<void> {
    this.isHealed = true
    this.trace.line('all', 'faults are over')
    this.wire.heal()
    for (const machine of this.machines) machine.wake()
    for (const host of this.hosts) host.resume()
  }

  /** They serve everything, whatever became of the others. */
  async #startHealthyWorkers(store = this.store, checker = this.checker): Promise<void> {
    const served = { types: TYPE_NAMES, queues: QUEUES, concurrency: HEALTHY_CONCURRENCY, checker }
    for (let started = 0; started < 2; ) {
      const caller = await this.connected('healthy', store)
      const worker = this.started(() => caller.host.enter(() => this.startWorker(caller, served)))
      if (worker === null) caller.host.kill()
      else started++
    }
  }

  /** null: the store's clock is too uncertain for leases of this length, and the program ends with that message. */
  started(start: () => Worker): Worker | null {
    try {
      return start()
    } catch (error) {
      if (!String(error).includes('uncertain')) throw error
      this.marks.hit('a clock too uncertain for the lease')
      return null
    }
  }

  #watchRecovery(store: SimulatedStore, checker: Checker): void {
    const { settings, kernel } = this
    const bound = store.recoversWithin(settings)
    const look = (): void => {
      checker.checkRecovery(store.now(), bound)
      kernel.after(LOOK_EVERY, look)
    }
    look()
  }

  async #drained(isQuiet: () => boolean): Promise<void> {
    const until = this.kernel.now + DRAIN
    for (let quiet = 0; quiet < 3; ) {
      await this.kernel.sleep(LOOK_EVERY)
      const isDone = isQuiet() && [...this.checker.tasks.values()].every(({ status }) => isTerminal(status))
      quiet = isDone ? quiet + 1 : 0
      if (this.kernel.now < until) continue
      const left = [...this.checker.tasks.values()].filter(({ status }) => !isTerminal(status))
      this.checker.violate(
        'I1',
        `not drained ${DRAIN} ms after all faults: ${left.map(named).join(', ') || 'calls are still under way'}`,
        left[0]?.id,
      )
      for (const { what, host } of this.calls.pending) this.trace.line('all', `waits for ${what} of ${host.name}`)
      return
    }
  }
}

const named = ({ id, status, type }: TaskRecord): string => `${type} ${id} is ${status}`

const SILENT = { debug() {}, info() {}, warn() {}, error() {} }
