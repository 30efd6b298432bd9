/** Turns facts about a store and its environment into findings: a verdict, what was found, and how to fix it. */

import type { Instant } from '../task.ts'
import { formatDuration } from '../values/durations.ts'
import { formatInstant } from '../values/instants.ts'

/**
 * Stores and the runtime report facts; this file judges them. Units are bytes, milliseconds and counts. `how` is the advice of the
 * store that reports the fact: this file knows no database.
 */
export type Fact =
  | {
      readonly check: 'version'
      readonly product: string
      readonly version: string
      readonly least: string
      readonly isEnough: boolean
    }
  | { readonly check: 'schema'; readonly found: number; readonly known: number }
  /** One setting that the durability of accepted tasks depends on. */
  | {
      readonly check: 'durability'
      readonly setting: string
      readonly value: string
      readonly wanted: string
      readonly how: string
    }
  | { readonly check: 'integrity'; readonly by: string; readonly faults: readonly string[]; readonly how: string }
  /** Rights that this role or user needs but does not have. */
  | {
      readonly check: 'permissions'
      readonly who: string
      readonly missing: readonly string[]
      /** Also missing, but needed only by a check or a convenience. */
      readonly optional?: readonly string[]
      readonly how: string
    }
  | { readonly check: 'privacy'; readonly path: string; readonly mode: number }
  | { readonly check: 'disk-space'; readonly free: number; readonly used: number }
  /** The log, which cannot be truncated while a reader uses it. */
  | { readonly check: 'log'; readonly size: number; readonly usual: number; readonly how: string }
  | {
      readonly check: 'bloat'
      readonly what: string
      readonly dead: number
      readonly live: number
      readonly unit: 'bytes' | 'rows'
      readonly how: string
    }
  /** The setting that removes dead rows. */
  | { readonly check: 'vacuum'; readonly setting: string; readonly isOn: boolean; readonly how: string }
  | {
      readonly check: 'transactions'
      readonly oldest: { readonly who: string; readonly age: number; readonly state: string } | null
      readonly how: string
      /** Sessions that this role cannot see, and how it could. */
      readonly hidden: number
      readonly howToSee: string
    }
  | { readonly check: 'connections'; readonly used: number; readonly most: number; readonly how: string }
  /** Whether a conditional write is refused when its condition is false. Stores on objects and streams prove it with a race. */
  | { readonly check: 'conditional-writes'; readonly areAtomic: boolean; readonly found: string }
  /** Old versions of rewritten objects, and whether a rule removes them. */
  | { readonly check: 'versions'; readonly areKept: boolean; readonly areExpired: boolean; readonly how: string }
  | { readonly check: 'clock'; readonly ahead: number; readonly uncertainty: number }
  /** A process has used the file with a clock far ahead of this machine's. */
  | {
      readonly check: 'clock-mark'
      readonly at: Instant
      readonly by: string | null
      readonly here: Instant
      readonly leases: number
      readonly tasks: number
    }
  | { readonly check: 'workers'; readonly versions: Readonly<Record<string, number>> }
  /** Handlers of one worker that did not stop when their signal aborted. */
  | {
      readonly check: 'stuck'
      readonly worker: string
      readonly count: number
      readonly slots: number
      readonly types: readonly string[]
      readonly isClaiming: boolean
    }
  | {
      readonly check: 'queue'
      readonly queue: string
      readonly ready: number
      readonly isPaused: boolean
      readonly unserved: readonly string[]
      /** With a limit of its running tasks; `waited` is how long the first ready task has waited. */
      readonly limit?: { readonly running: number; readonly concurrency: number; readonly waited: number }
    }
  | { readonly check: 'paused-group'; readonly queue: string; readonly group: string; readonly ready: number }
  /** A read that failed with an error. */
  | { readonly check: 'reading'; readonly what: string; readonly error: string }
  | { readonly check: 'leases'; readonly lapsed: number; readonly oldest: number }
  | {
      readonly check: 'schedule'
      readonly id: string
      readonly late: number
      readonly isReadable: boolean
      readonly hasWorkers: boolean
    }

/** How serious a finding is. */
export type Verdict = 'ok' | 'warning' | 'problem'

/** Something that `examine` found, and how to repair it. */
export interface Finding {
  readonly check: Fact['check']
  readonly verdict: Verdict
  /** One sentence. */
  readonly found: string
  /** What to do about it; null if nothing. */
  readonly fix: string | null
}

type Of<Check extends Fact['check']> = Extract<Fact, { readonly check: Check }>
type Judged = Omit<Finding, 'check'>
type Judges = { readonly [Check in Fact['check']]: (fact: Of<Check>) => Judged }

const MB = 1_000_000

const ok = (found: string): Judged => ({ verdict: 'ok', found, fix: null })
const warning = (found: string, fix: string): Judged => ({ verdict: 'warning', found, fix })
const problem = (found: string, fix: string): Judged => ({ verdict: 'problem', found, fix })

/** A smaller difference between clocks is not reported. */
const CLOCK_OFF = 5_000
const LONG_TRANSACTION = 300_000
/** One that does nothing is forgotten, not long. */
const LONG_IDLE_TRANSACTION = 60_000
const LATE_SCHEDULE = 60_000
/** A task that waits for less behind a limit is what the limit is for. */
const LONG_WAIT = 300_000
const LITTLE_SPACE = 500 * MB

const JUDGES: Judges = {
  version: ({ product, version, least, isEnough }) =>
    isEnough
      ? ok(`${product} ${version}`)
      : problem(`${product} ${version} is too old: ${least} is needed`, `Upgrade to ${product} ${least} or later.`),

  schema: ({ found, known }) =>
    found === known
      ? ok(`the tables are those of this release (${known})`)
      : problem(`the tables have version ${found}, this release knows ${known}`, 'Run `holdfast migrate`.'),

  durability: ({ setting, value, wanted, how }) =>
    value === wanted
      ? ok(`${setting} is ${value}`)
      : problem(`${setting} is ${value}, not ${wanted}: accepted tasks can be lost`, how),

  integrity: ({ by, faults, how }) =>
    faults.length === 0 ? ok(`${by} found no errors`) : problem(`${by} found errors: ${faults.join('; ')}`, how),

  permissions: ({ who, missing, optional = [], how }) => {
    if (missing.length > 0) return problem(`${who} may not ${[...missing, ...optional].join(', ')}`, how)
    return optional.length === 0
      ? ok(`${who} has every right that is needed`)
      : warning(
          `${who} has every right that workers need, but may not ${optional.join(', ')}, which only doctor needs`,
          how,
        )
  },

  privacy: ({ path, mode }) =>
    (mode & 0o077) === 0
      ? ok('only the owner can read the file')
      : warning(
          `other users can read or write the file (mode ${mode.toString(8)}), including every payload`,
          `chmod 600 ${path}*`,
        ),

  'disk-space': ({ free, used }) =>
    free > Math.max(LITTLE_SPACE, used / 10)
      ? ok(`${bytes(free)} are free on the disk, ${bytes(used)} are used`)
      : warning(
          `only ${bytes(free)} are free on the disk, ${bytes(used)} are used`,
          'Free some space, or remove old tasks with `holdfast prune`.',
        ),

  log: ({ size, usual, how }) =>
    size <= 2 * usual
      ? ok(`the log has ${bytes(size)}`)
      : warning(`the log has grown to ${bytes(size)}: a long-running read keeps it from being truncated`, how),

  bloat: ({ what, dead, live, unit, how }) => {
    const text = unit === 'bytes' ? bytes(dead) : `${dead} rows`
    const isMuch = dead > live && dead > (unit === 'bytes' ? 64 * MB : 50_000)
    return isMuch ? warning(`${what}: ${text} are dead, more than are live`, how) : ok(`${what}: ${text} are dead`)
  },

  vacuum: ({ setting, isOn, how }) =>
    isOn
      ? ok(`${setting} is on`)
      : problem(`${setting} is off: tables and indexes grow without limit, and claims get slower`, how),

  transactions: ({ oldest, how, hidden, howToSee }) => {
    const unseen = hidden === 0 ? '' : ` (${hidden} sessions of other roles are not visible: ${howToSee})`
    const long = oldest?.state.startsWith('idle in transaction') ? LONG_IDLE_TRANSACTION : LONG_TRANSACTION
    if (oldest === null || oldest.age < long) return ok(`no transaction has been open for long${unseen}`)
    return warning(
      `a transaction of ${oldest.who} has been open for ${formatDuration(seconds(oldest.age))} (${oldest.state}): until it ends, vacuum cannot remove newer dead rows, and claims get slower${unseen}`,
      how,
    )
  },

  connections: ({ used, most, how }) =>
    used < 0.9 * most
      ? ok(`${used} of ${most} connections are in use`)
      : warning(`${used} of ${most} connections are in use: new ones will soon be refused`, how),

  'conditional-writes': ({ areAtomic, found }) =>
    areAtomic
      ? ok(found)
      : problem(found, 'Use a server that honours conditional writes: without them two workers can win one claim.'),

  versions: ({ areKept, areExpired, how }) =>
    !areKept
      ? ok('the bucket keeps no old versions')
      : areExpired
        ? ok('the bucket keeps old versions, and a rule removes them')
        : warning('the bucket keeps every old version: each move of a task leaves one forever', how),

  clock: ({ ahead, uncertainty }) => {
    const off = Math.max(0, Math.abs(ahead) - uncertainty)
    if (off < CLOCK_OFF)
      return ok(`the clocks of this machine and of the store agree to ${formatDuration(Math.round(Math.abs(ahead)))}`)
    return warning(
      `the clock of this machine is ${formatDuration(seconds(Math.abs(ahead)))} ${ahead > 0 ? 'ahead of' : 'behind'} the store's`,
      "Synchronise it with NTP. Tasks run by the store's clock, but ids and logs of this machine are wrong.",
    )
  },

  'clock-mark': ({ at, by, here, leases, tasks }) =>
    problem(
      `${by ?? 'a process'} has used the file with a clock that showed ${formatInstant(at)}, ${formatDuration(seconds(at - here))} ahead of this machine's; ${tasks} tasks and ${leases} leases are dated in the future`,
      'If that clock was wrong: set it, stop the process, and run `holdfast doctor --repair-clock`. If the clock of this machine is wrong, set this one.',
    ),

  workers: ({ versions }) => {
    const each = Object.entries(versions).map(([version, count]) => `${count} with ${version}`)
    if (each.length > 1)
      return warning(
        `live workers have different versions of Holdfast: ${each.join(', ')}`,
        'Finish the deployment, or stop the old workers: see `holdfast workers`.',
      )
    return ok(each.length === 0 ? 'no live workers' : `live workers: ${each[0]}`)
  },

  stuck: ({ worker, count, slots, types, isClaiming }) => {
    const handlers = count === 1 ? '1 handler is' : `${count} handlers are`
    const text = `worker ${worker} with ${slots} slots: ${handlers} stuck (${types.map((type) => `'${type}'`).join(', ')})`
    const fix =
      'Restart the worker. Make the handler obey ctx.signal, or isolate it in a thread or a process: docs/isolation.md.'
    if (count === 0) return ok(`worker ${worker}: no handler is stuck`)
    return isClaiming ? warning(text, fix) : problem(`${text}, and it takes no new tasks`, fix)
  },

  queue: ({ queue, ready, isPaused, unserved, limit }) => {
    const waiting = ready === 1 ? '1 task waits' : `${ready} tasks wait`
    if (isPaused && ready > 0)
      return warning(`queue '${queue}' is paused, and ${waiting} in it`, `holdfast resume ${queue}`)
    if (unserved.length > 0)
      return warning(
        `queue '${queue}': ${waiting}, and no live worker serves it with a handler for ${unserved.map((type) => `'${type}'`).join(', ')}`,
        `Start a worker: holdfast worker MODULE --queue ${queue}`,
      )
    if (ready > 0 && limit !== undefined && limit.running >= limit.concurrency && limit.waited >= LONG_WAIT)
      return warning(
        `queue '${queue}' is at its limit (${limit.running} of ${limit.concurrency} running), and ${waiting}, the first of them for ${formatDuration(seconds(limit.waited))}`,
        `If that is too long, raise the limit: holdfast limit ${queue}`,
      )
    return ok(isPaused ? `queue '${queue}' is paused and empty` : `queue '${queue}': ${waiting}`)
  },

  'paused-group': ({ queue, group, ready }) => {
    const paused = `group '${group}' of queue '${queue}' is paused`
    return ready === 0
      ? ok(`${paused} and empty`)
      : warning(
          `${paused}, and ${ready === 1 ? '1 task waits' : `${ready} tasks wait`} in it`,
          `holdfast resume ${queue} --group '${group}'`,
        )
  },

  reading: ({ what, error }) =>
    problem(`${what} could not be read: ${error}`, 'Fix the other findings, then run doctor again.'),

  leases: ({ lapsed, oldest }) =>
    lapsed === 0
      ? ok('every running task is held by a live worker')
      : problem(
          `${lapsed === 1 ? '1 running task has' : `${lapsed} running tasks have`} a lease that lapsed up to ${formatDuration(seconds(oldest))} ago, and no worker has polled since`,
          'Start a worker of any queue and type: its first poll takes them back.',
        ),

  schedule: ({ id, late, isReadable, hasWorkers }) => {
    if (!isReadable)
      return problem(`schedule '${id}' cannot be read`, `holdfast schedule delete ${id}, and create it again.`)
    if (late < LATE_SCHEDULE) return ok(`schedule '${id}' is on time`)
    const text = `schedule '${id}' should have fired ${formatDuration(seconds(late))} ago`
    return hasWorkers
      ? problem(
          `${text}, though workers are alive`,
          'Read the log of the workers: it says why the schedule cannot fire.',
        )
      : problem(`${text}; no worker is alive to fire it`, 'Start a worker: every worker fires schedules.')
  },
}

export const findingOf = (fact: Fact): Finding => {
  const judge = JUDGES[fact.check] as (fact: Fact) => Judged
  return { check: fact.check, ...judge(fact) }
}

const seconds = (duration: number): number => Math.round(duration / 1_000) * 1_000

const bytes = (count: number): string => {
  if (count >= 1_000 * MB) return `${(count / (1_000 * MB)).toFixed(1)} GB`
  return count >= MB ? `${(count / MB).toFixed(1)} MB` : `${(count / 1_000).toFixed(1)} kB`
}
