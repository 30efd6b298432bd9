/** Checks a whole store: every history in it, and, with logs of witnesses, what happened against what the store says. */
import { isHoldfastError } from '../../core/errors.ts'
import type { ScheduleRecord } from '../../core/schedules/schedule.ts'
import { readLine } from '../../core/transfer/portable.ts'
import { type Duration, parseDuration } from '../../core/values/durations.ts'
import { checkOptionNames } from '../../core/values/option-names.ts'
import type { Client } from '../../runtime/client.ts'
import { Buckets } from './buckets.ts'
import { storedDigest } from './digests.ts'
import {
  checkKey,
  checkSchedule,
  checkToken,
  type FiredSlot,
  firstEndOf,
  type KeyHolder,
  slotOf,
} from './group-rules.ts'
import { checkRecord } from './history-rules.ts'
import { INVARIANTS, type Invariant } from './invariants.ts'
import { Ledger, type Violation } from './ledger.ts'
import { LogReader, type Logs } from './logs.ts'
import { checkSightings, lateRuns, type SeenTask } from './run-rules.ts'
import type { EndLine, StartLine, SubmittedLine, WitnessLine } from './witness-lines.ts'

/** What `verify` may assume about the store and the logs. */
export interface VerifyOptions {
  /** Logs that `openWitness` wrote: files, or folders of them. */
  readonly witness?: readonly string[]
  /** All work is done, so every task must have ended. */
  readonly drained?: boolean
  /** The logs contain every call of submit, so a task that no log knows is a violation. */
  readonly allSubmitted?: boolean
  /** How long ended tasks are kept. A task that is missing after that is no violation. Default: the retention of the store, otherwise forever. */
  readonly kept?: Duration
  /** How soon the task of a dead process must run again. Not checked if it is left out. */
  readonly recovery?: Duration
  /** How long a call may take. Default 1m. */
  readonly deadline?: Duration
  /** How much the clocks of the processes may differ. Default 1s. */
  readonly clockBound?: Duration
  /** Called from time to time with the number of tasks that have been read. */
  readonly onProgress?: (tasks: number) => void
}

/** The result for one invariant. */
export interface Verdict {
  readonly invariant: Invariant
  readonly promise: string
  /** How many facts were checked; 0 if there was nothing to check. */
  readonly checked: number
  readonly violations: number
  /** What was counted, or what is needed to have something to check. */
  readonly of: string
}

/** The result of `verify`. */
export interface Verification {
  readonly address: string
  readonly at: string
  readonly tasks: number
  readonly schedules: number
  readonly witness: { readonly files: number; readonly lines: number; readonly cut: number; readonly runs: number }
  /** Runs that ended after they had lost their lease. Their results were refused; otherwise I11 is violated. */
  readonly lateRuns: number
  readonly verdicts: readonly Verdict[]
  readonly violations: number
  /** The first hundred. */
  readonly found: readonly Violation[]
}

type Fact =
  | WitnessLine
  | { readonly what: 'stored'; readonly task: SeenTask }
  | { readonly what: 'gone' }
  | { readonly what: 'token'; readonly id: string }
  | { readonly what: 'holder'; readonly holder: KeyHolder }
  | { readonly what: 'slot'; readonly fired: FiredSlot }
  | { readonly what: 'schedule'; readonly record: ScheduleRecord }

const MOST_SHOWN = 100
/** Missing tasks that are read again one by one. */
const MOST_READ_AGAIN = 1_000
const PROGRESS_EVERY = 1_000

const OPTIONS: ReadonlySet<string> = new Set<keyof VerifyOptions>([
  'witness',
  'drained',
  'allSubmitted',
  'kept',
  'recovery',
  'deadline',
  'clockBound',
  'onProgress',
])

/** Reads the logs and then the store, page by page. It changes nothing, and may run while workers do. */
export const verify = async (client: Client, options: VerifyOptions = {}): Promise<Verification> => {
  checkOptionNames(options, OPTIONS, 'verify')
  const verifier = new Verifier(client, options)
  try {
    return await verifier.run()
  } finally {
    verifier.close()
  }
}

class Verifier {
  readonly #client: Client
  readonly #options: VerifyOptions
  readonly #ledger = new Ledger(MOST_SHOWN)
  readonly #buckets = new Buckets<Fact>()
  readonly #readAt = Date.now()
  readonly #clockBound: number
  readonly #recovery: number | null
  #keptSince = Number.NEGATIVE_INFINITY
  #tasks = 0
  #schedules = 0
  #lateRuns = 0
  /** Tasks that no log knows. */
  readonly #unknown: string[] = []
  #unknownCount = 0
  readonly #missing: { readonly id: string; readonly how: string }[] = []

  constructor(client: Client, options: VerifyOptions) {
    this.#client = client
    this.#options = options
    this.#clockBound = parseDuration(options.clockBound ?? '1s', 'clockBound')
    this.#recovery = options.recovery === undefined ? null : parseDuration(options.recovery, 'recovery')
  }

  close(): void {
    this.#buckets.remove()
  }

  async run(): Promise<Verification> {
    const deadline = parseDuration(this.#options.deadline ?? '1m', 'deadline')
    const reader = new LogReader(this.#ledger, deadline)
    for await (const line of reader.read(this.#options.witness ?? []))
      if ('task' in line) this.#buckets.add(`task ${line.task}`, line)
    const logs = reader.end(this.#readAt)
    this.#keptSince = await this.#keptFrom()
    const cursors = new Map((await this.#client.schedules.list()).map(({ id, cursor }) => [id, cursor]))
    let n = 0
    for await (const text of this.#client.export()) this.#readStored(text, ++n)
    for (const [key, facts] of this.#buckets.groups()) this.#judge(key, facts, logs, cursors)
    await this.#judgeMissing()
    this.#judgeUnknown(logs)
    return this.#report(logs)
  }

  async #keptFrom(): Promise<number> {
    const stored = Object.values((await this.#client.retention.get()) ?? {})
    const given = this.#options.kept === undefined ? stored : [this.#options.kept]
    const shortest = Math.min(...given.map((duration) => parseDuration(duration, 'kept')))
    return Number.isFinite(shortest) ? this.#readAt - shortest : Number.NEGATIVE_INFINITY
  }

  #readStored(text: string, n: number): void {
    const line = readLine(text, n)
    if (!('kind' in line)) return
    if (line.kind === 'schedule') {
      this.#schedules++
      this.#buckets.add(`schedule ${line.schedule.id}`, { what: 'schedule', record: line.schedule })
    } else if (line.kind === 'key') {
      // Its task was removed on purpose.
      this.#buckets.add(`task ${line.key.taskId}`, { what: 'gone' })
      this.#addSlot(line.key.key, null)
    } else if (line.kind === 'task') {
      const { input, output, encoding, outputEncoding, journal: _, lastError: __, progress: ___, ...rest } = line.task
      const task: SeenTask = {
        ...rest,
        inputDigest: storedDigest(input, encoding),
        outputDigest: output === null ? null : storedDigest(output, outputEncoding),
      }
      this.#buckets.add(`task ${task.id}`, { what: 'stored', task })
      for (const { move, op } of task.history)
        if (move === 'claim') this.#buckets.add(`token ${op}`, { what: 'token', id: task.id })
      this.#addKey(task, line.key?.exact ?? null)
      if (++this.#tasks % PROGRESS_EVERY === 0) this.#options.onProgress?.(this.#tasks)
    }
  }

  #addKey(task: SeenTask, isExact: boolean | null): void {
    const { idempotencyKey: key, id, createdAt } = task
    // A coalesce key moves from task to task.
    if (key === null || key.startsWith('coalesce:')) return
    this.#buckets.add(`key ${key}`, { what: 'holder', holder: { id, isExact } })
    const endedAt = firstEndOf(task)
    if (endedAt !== undefined) this.#addSlot(key, { id, createdAt, endedAt })
  }

  #addSlot(key: string, task: FiredSlot['task']): void {
    const found = slotOf(key)
    if (found === null) return
    const { schedule, ...slot } = found
    this.#buckets.add(`schedule ${schedule}`, { what: 'slot', fired: { ...slot, task } })
  }

  #judge(key: string, facts: readonly Fact[], logs: Logs, cursors: ReadonlyMap<string, number>): void {
    const [kind, name] = [key.slice(0, key.indexOf(' ')), key.slice(key.indexOf(' ') + 1)]
    if (kind === 'task') this.#judgeTask(name, facts, logs)
    else if (kind === 'token')
      checkToken(
        name,
        facts.flatMap((fact) => (fact.what === 'token' ? fact.id : [])),
        this.#ledger,
      )
    else if (kind === 'key')
      checkKey(
        name,
        facts.flatMap((fact) => (fact.what === 'holder' ? fact.holder : [])),
        this.#ledger,
      )
    else {
      const record = facts.flatMap((fact) => (fact.what === 'schedule' ? fact.record : []))[0] ?? null
      const fired = facts.flatMap((fact) => (fact.what === 'slot' ? fact.fired : []))
      const until = cursors.get(name) ?? Number.NEGATIVE_INFINITY
      checkSchedule(record, fired, { keptSince: this.#keptSince, until, clockBound: this.#clockBound }, this.#ledger)
    }
  }

  #judgeTask(id: string, facts: readonly Fact[], logs: Logs): void {
    const of = <What extends Fact['what']>(...whats: readonly What[]): Extract<Fact, { what: What }>[] =>
      facts.filter((fact): fact is Extract<Fact, { what: What }> => whats.includes(fact.what as What))
    const starts: StartLine[] = of('start')
    const ends: EndLine[] = of('end', 'threw') as EndLine[]
    const submits: SubmittedLine[] = of('submitted')
    const [stored] = of('stored')
    if (submits.length > 0) this.#ledger.check('I1')
    if (stored === undefined) {
      const isRemoved = of('gone', 'removed').length > 0
      const lastSeen = Math.max(...[...starts, ...ends, ...submits].map(({ at }) => at))
      if (isRemoved || starts.length + ends.length + submits.length === 0 || lastSeen < this.#keptSince) return
      this.#missing.push({ id, how: submits.length > 0 ? 'was accepted' : 'was run' })
      return
    }
    const { task } = stored
    checkRecord(task, this.#clockBound, this.#ledger)
    checkSightings(
      task,
      { starts, ends, submits },
      {
        readAt: this.#readAt,
        clockBound: this.#clockBound,
        workers: logs.workers,
        serves: logs.serves,
        downs: logs.downs,
        recovery: this.#recovery,
        isDrained: this.#options.drained === true,
      },
      this.#ledger,
    )
    this.#lateRuns += lateRuns(task, ends)
    if (this.#options.allSubmitted !== true || task.createdAt >= this.#readAt - this.#clockBound) return
    this.#ledger.check('I1b')
    if (submits.length > 0 || task.scheduleId !== null || task.replayOf !== null) return
    this.#unknownCount++
    if (this.#unknown.length < MOST_SHOWN) this.#unknown.push(id)
  }

  /** A page may have been read before its task was inserted. */
  async #judgeMissing(): Promise<void> {
    for (const [i, { id, how }] of this.#missing.entries())
      if (i >= MOST_READ_AGAIN || !(await this.#isThere(id)))
        this.#ledger.violate('I1', id, `${how}, and is not in the store`)
  }

  async #isThere(id: string): Promise<boolean> {
    try {
      await this.#client.get(id)
      return true
    } catch (error) {
      if (isHoldfastError(error, 'TASK_NOT_FOUND')) return false
      throw error
    }
  }

  /** A call with an unclear outcome may have made its tasks. */
  #judgeUnknown({ unclear }: Logs): void {
    if (this.#unknownCount <= unclear) return
    const how = unclear === 0 ? '' : `, and calls with an unclear outcome explain no more than ${unclear} such tasks`
    for (const id of this.#unknown) this.#ledger.violate('I1b', id, `was never submitted${how}`)
  }

  #report(logs: Logs): Verification {
    const { checked, violations, found } = this.#ledger
    const verdicts = (Object.keys(INVARIANTS) as Invariant[]).map((invariant): Verdict => {
      const count = checked.get(invariant) ?? 0
      const { facts, needs } = SUBJECTS[invariant]
      return {
        invariant,
        promise: INVARIANTS[invariant],
        checked: count,
        violations: violations.get(invariant) ?? 0,
        of: count > 0 ? facts : needs,
      }
    })
    return {
      address: this.#client.address,
      at: new Date(this.#readAt).toISOString(),
      tasks: this.#tasks,
      schedules: this.#schedules,
      witness: { files: logs.files, lines: logs.lines, cut: logs.cut, runs: logs.runs },
      lateRuns: this.#lateRuns,
      verdicts,
      violations: verdicts.reduce((sum, verdict) => sum + verdict.violations, 0),
      found,
    }
  }
}

/** What each invariant counts, and what it needs if there is nothing to count. */
const SUBJECTS: Readonly<Record<Invariant, { readonly facts: string; readonly needs: string }>> = {
  I1: { facts: 'accepted or drained tasks', needs: 'needs submissions in the logs, or --drained' },
  I1b: { facts: 'tasks', needs: 'needs --all-submitted' },
  I2: { facts: 'claims', needs: 'needs claimed tasks' },
  I3: { facts: 'ends of leases and runs', needs: 'needs claimed tasks' },
  I4: { facts: 'tasks', needs: 'needs tasks' },
  I5: { facts: 'ended tasks', needs: 'needs ended tasks' },
  I6: { facts: 'keys', needs: 'needs tasks with idempotency keys' },
  I7: { facts: 'claims', needs: 'needs claimed tasks' },
  I8: { facts: 'entries', needs: 'needs tasks' },
  I9: { facts: 'slots', needs: 'needs tasks of schedules' },
  I10: { facts: 'runs of dead processes', needs: 'needs deaths in the logs, and --recovery' },
  I11: { facts: 'completions', needs: 'needs runs of workers in the logs' },
  I12: { facts: 'runs', needs: 'needs runs in the logs' },
  I13: { facts: 'inputs', needs: 'needs runs or submissions in the logs' },
  I14: { facts: 'tasks whose runs were cut short', needs: 'needs runs in the logs that were cut short' },
  I15: { facts: 'calls', needs: 'needs submissions in the logs' },
  I16: { facts: 'runs', needs: 'needs what workers serve in the logs' },
}
