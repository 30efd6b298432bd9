/** From facts about a store and its surroundings to what a person should know: is it well, what was found, how to mend it. */
import { formatDuration } from './durations.ts'

/** What stores and the runtime report; whether it is good or bad is decided here. Bytes, milliseconds, counts. */
export type Fact =
  | {
      readonly check: 'version'
      readonly product: string
      readonly version: string
      readonly least: string
      readonly isEnough: boolean
    }
  | { readonly check: 'schema'; readonly found: number; readonly known: number }
  /** One setting on which it rests that what was accepted survives. */
  | {
      readonly check: 'durability'
      readonly setting: string
      readonly value: string
      readonly wanted: string
      readonly how: string
    }
  | { readonly check: 'integrity'; readonly by: string; readonly faults: readonly string[] }
  /** What this role or user may not do, though it must. */
  | { readonly check: 'permissions'; readonly who: string; readonly missing: readonly string[]; readonly how: string }
  | { readonly check: 'privacy'; readonly path: string; readonly mode: number }
  | { readonly check: 'disk-space'; readonly free: number; readonly used: number }
  /** The log that cannot be emptied while a reader holds on to it. */
  | { readonly check: 'log'; readonly size: number; readonly usual: number }
  | {
      readonly check: 'bloat'
      readonly what: string
      readonly dead: number
      readonly live: number
      readonly unit: 'bytes' | 'rows'
      readonly how: string
    }
  | { readonly check: 'vacuum'; readonly isOn: boolean }
  | {
      readonly check: 'transactions'
      readonly oldest: { readonly who: string; readonly age: number; readonly state: string } | null
      readonly hidden: number
    }
  | { readonly check: 'connections'; readonly used: number; readonly most: number }
  /** Whether a write under a condition is refused when the condition does not hold: stores on objects and streams prove it by a race. */
  | { readonly check: 'conditional-writes'; readonly areAtomic: boolean; readonly found: string }
  /** Old versions of what is written again and again, and whether a rule takes them away. */
  | { readonly check: 'versions'; readonly areKept: boolean; readonly areExpired: boolean }
  | { readonly check: 'clock'; readonly ahead: number; readonly uncertainty: number }
  | { readonly check: 'workers'; readonly versions: Readonly<Record<string, number>> }
  | {
      readonly check: 'queue'
      readonly queue: string
      readonly ready: number
      readonly isPaused: boolean
      readonly unserved: readonly string[]
    }
  /** A question that the store answered with an error. */
  | { readonly check: 'reading'; readonly what: string; readonly error: string }
  | { readonly check: 'leases'; readonly lapsed: number; readonly oldest: number }
  | {
      readonly check: 'schedule'
      readonly id: string
      readonly late: number
      readonly isReadable: boolean
      readonly hasWorkers: boolean
    }

export type Verdict = 'ok' | 'warning' | 'problem'

export interface Finding {
  readonly check: Fact['check']
  readonly verdict: Verdict
  /** One sentence. */
  readonly found: string
  /** What to do about it; null: nothing. */
  readonly mend: string | null
}

type Of<Check extends Fact['check']> = Extract<Fact, { readonly check: Check }>
type Judged = Omit<Finding, 'check'>
type Judges = { readonly [Check in Fact['check']]: (fact: Of<Check>) => Judged }

const MB = 1_000_000

const ok = (found: string): Judged => ({ verdict: 'ok', found, mend: null })
const warning = (found: string, mend: string): Judged => ({ verdict: 'warning', found, mend })
const problem = (found: string, mend: string): Judged => ({ verdict: 'problem', found, mend })

/** From this on a difference of clocks is worth a word. */
const CLOCK_OFF = 5_000
const LONG_TRANSACTION = 300_000
const LATE_SCHEDULE = 60_000
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
      : problem(`${setting} is ${value}, not ${wanted}: tasks that were accepted can be lost`, how),

  integrity: ({ by, faults }) =>
    faults.length === 0
      ? ok(`${by} found no fault`)
      : problem(
          `${by} found the file damaged: ${faults.join('; ')}`,
          'Stop all workers, copy the file with its -wal, and restore a backup, or rescue what can be read with `sqlite3 FILE .recover`.',
        ),

  permissions: ({ who, missing, how }) =>
    missing.length === 0
      ? ok(`${who} may do all that is needed`)
      : problem(`${who} may not ${missing.join(', ')}`, how),

  privacy: ({ path, mode }) =>
    (mode & 0o077) === 0
      ? ok('only its owner can read the file')
      : warning(
          `others can read or write the file (mode ${mode.toString(8)}), and with it every payload`,
          `chmod 600 ${path}*`,
        ),

  'disk-space': ({ free, used }) =>
    free > Math.max(LITTLE_SPACE, used / 10)
      ? ok(`${bytes(free)} are free on its disk, ${bytes(used)} are used`)
      : warning(
          `only ${bytes(free)} are free on its disk, ${bytes(used)} are used`,
          'Free some space, or `holdfast prune` what is not needed.',
        ),

  log: ({ size, usual }) =>
    size <= 2 * usual
      ? ok(`the log has ${bytes(size)}`)
      : warning(
          `the log has grown to ${bytes(size)}: a connection that reads without end keeps it from being emptied`,
          'End that process (a backup, a shell with an open transaction), or restart the applications that have the file open.',
        ),

  bloat: ({ what, dead, live, unit, how }) => {
    const told = unit === 'bytes' ? bytes(dead) : `${dead} rows`
    const isMuch = dead > live && dead > (unit === 'bytes' ? 64 * MB : 50_000)
    return isMuch ? warning(`${what}: ${told} are dead, more than are alive`, how) : ok(`${what}: ${told} are dead`)
  },

  vacuum: ({ isOn }) =>
    isOn
      ? ok('autovacuum is on')
      : problem(
          'autovacuum is off: tables and indexes grow without end, and claims get slower',
          'alter system set autovacuum = on; select pg_reload_conf();',
        ),

  transactions: ({ oldest, hidden }) => {
    const unseen =
      hidden === 0 ? '' : ` (${hidden} sessions of other roles cannot be seen: grant pg_read_all_stats to this role)`
    if (oldest === null || oldest.age < LONG_TRANSACTION) return ok(`no transaction is open for long${unseen}`)
    return warning(
      `a transaction of ${oldest.who} is open for ${formatDuration(seconds(oldest.age))} (${oldest.state}): until it ends nothing that died since is swept, and claims get slower${unseen}`,
      'End it (select pg_terminate_backend(pid), drop the slot, or commit what was prepared), and set idle_in_transaction_session_timeout.',
    )
  },

  connections: ({ used, most }) =>
    used < 0.9 * most
      ? ok(`${used} of ${most} connections are in use`)
      : warning(
          `${used} of ${most} connections are in use: soon nobody can connect`,
          'Lower `max` of the pools, use a pooler, or raise max_connections.',
        ),

  'conditional-writes': ({ areAtomic, found }) =>
    areAtomic
      ? ok(found)
      : problem(found, 'Use a server that honours conditional writes: without them two workers can win one claim.'),

  versions: ({ areKept, areExpired }) =>
    !areKept
      ? ok('the bucket keeps no old versions')
      : areExpired
        ? ok('the bucket keeps old versions, and a rule takes them away')
        : warning(
            'the bucket keeps every old version: each move of a task leaves one, for ever',
            'Suspend versioning, or add a lifecycle rule with NoncurrentVersionExpiration and ExpiredObjectDeleteMarker.',
          ),

  clock: ({ ahead, uncertainty }) => {
    const off = Math.max(0, Math.abs(ahead) - uncertainty)
    if (off < CLOCK_OFF)
      return ok(`the clocks of this machine and of the store agree to ${formatDuration(Math.round(Math.abs(ahead)))}`)
    return warning(
      `the clock of this machine is ${formatDuration(seconds(Math.abs(ahead)))} ${ahead > 0 ? 'ahead of' : 'behind'} the store's`,
      'Let NTP set it. Tasks run by the clock of the store, but ids and logs of this machine are off.',
    )
  },

  workers: ({ versions }) => {
    const each = Object.entries(versions).map(([version, count]) => `${count} with ${version}`)
    if (each.length > 1)
      return warning(
        `live workers have different versions of Holdfast: ${each.join(', ')}`,
        'Finish the deployment, or stop those that were left behind: see `holdfast workers`.',
      )
    return ok(each.length === 0 ? 'no live workers' : `live workers: ${each[0]}`)
  },

  queue: ({ queue, ready, isPaused, unserved }) => {
    const waiting = ready === 1 ? '1 task waits' : `${ready} tasks wait`
    if (isPaused && ready > 0)
      return warning(`queue '${queue}' is paused, and ${waiting} in it`, `holdfast resume ${queue}`)
    if (unserved.length > 0)
      return warning(
        `queue '${queue}': ${waiting}, and no live worker serves it with a handler for ${unserved.map((type) => `'${type}'`).join(', ')}`,
        `Start a worker: holdfast worker MODULE --queue ${queue}`,
      )
    return ok(isPaused ? `queue '${queue}' is paused and empty` : `queue '${queue}': ${waiting}`)
  },

  reading: ({ what, error }) =>
    problem(`${what} could not be read: ${error}`, 'Mend what else was found, then ask again.'),

  leases: ({ lapsed, oldest }) =>
    lapsed === 0
      ? ok('every running task is held by a living worker')
      : problem(
          `${lapsed === 1 ? '1 running task has' : `${lapsed} running tasks have`} a lease that lapsed up to ${formatDuration(seconds(oldest))} ago, and no worker has looked since`,
          'Start a worker, of any queue and type: its first look takes them back.',
        ),

  schedule: ({ id, late, isReadable, hasWorkers }) => {
    if (!isReadable)
      return problem(`schedule '${id}' cannot be read`, `holdfast schedule delete ${id}, and create it again.`)
    if (late < LATE_SCHEDULE) return ok(`schedule '${id}' is on time`)
    const told = `schedule '${id}' should have fired ${formatDuration(seconds(late))} ago`
    return hasWorkers
      ? problem(`${told}, though workers are alive`, 'Read the log of the workers: they say why it cannot fire.')
      : problem(`${told}; no worker is alive to fire it`, 'Start a worker: each of them is a scheduler.')
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
