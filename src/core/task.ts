/** The task record that a store keeps, and its types. No behaviour. */

/** UTC milliseconds since the epoch. */
export type Instant = number

/** Stored statuses. `TaskStatus.expired === 'expired'`; all other states are views (views.ts). */
export const TaskStatus = {
  pending: 'pending',
  running: 'running',
  completed: 'completed',
  failed: 'failed',
  cancelled: 'cancelled',
  expired: 'expired',
  archived: 'archived',
} as const
export type TaskStatus = (typeof TaskStatus)[keyof typeof TaskStatus]

export const STATUSES: readonly TaskStatus[] = Object.values(TaskStatus)

/** Statuses that a task leaves only by an operator's move. */
export const TERMINAL_STATUSES: readonly TaskStatus[] = ['completed', 'failed', 'cancelled', 'expired', 'archived']

export const isTerminal = (status: TaskStatus): boolean => status !== 'pending' && status !== 'running'

/** The encoding of a payload's text: JSON, or bytes in base64. */
export type Encoding = 'json' | 'base64'

/** How much of a backoff is random. */
export type Jitter = 'full' | 'equal' | 'none'

/** Durations in milliseconds; see retry.ts for the rule. */
export interface RetryPolicy {
  /** The first wait, before jitter. */
  readonly base: number
  /** Applied to every further wait. */
  readonly multiplier: number
  /** No wait is longer. */
  readonly max: number
  /** How much of a wait is random. */
  readonly jitter: Jitter
}

/** The right to move a running task. `token` is new on every claim. */
export interface Lease {
  /** Proves that a move is the holder's. */
  readonly token: string
  /** Who holds it. */
  readonly workerId: string
  /** When it was taken. */
  readonly claimedAt: Instant
  /** When it lapses, unless it is renewed. */
  readonly expiresAt: Instant
  /** The length at the time of the claim: a renewal keeps it unless it gives another one. */
  readonly ttl: number
}

/** An error as data: the thrown value or a cause. */
export interface ErrorFacts {
  readonly name: string
  /** At most 4,096 characters. */
  readonly message: string
  /** From the driver or the runtime: `ECONNREFUSED`, `23505`. */
  readonly code?: string
  /** The detail of a database driver: `Key (id)=(7) already exists.` */
  readonly detail?: string
  /** The beginning of it. */
  readonly stack?: string
  /** `error.cause` and its causes, as far as they fit. */
  readonly cause?: ErrorFacts
  /** The first parts of an AggregateError. */
  readonly errors?: readonly ErrorFacts[]
}

/** An error as it is stored with a task. */
export interface TaskError extends ErrorFacts {
  /** When it happened. */
  readonly at: Instant
  /** The value of `attempts` when it happened. */
  readonly attempt: number
}

/** The history entry of one move. `n` is the revision after the move, so it does not change when older entries are dropped. */
export interface HistoryEntry {
  /** The revision of the task after this move. */
  readonly n: number
  /** The store's time of the move. */
  readonly at: Instant
  /** The name of the move: `submit`, `claim`, `complete`, `fail`, … docs/lifecycle.md lists them. */
  readonly move: string
  /** The status after it. */
  readonly to: TaskStatus
  /** The worker id, or the name of the client. */
  readonly by: string
  /** The lease token for moves out of running, otherwise one id per API call. A repeated call recognises itself by it. */
  readonly op: string
  /** When the task becomes due, where the move set it. */
  readonly availableAt?: Instant
  /** When the task expires, where the move set it. */
  readonly expiresAt?: Instant
  /** Of `expire`: when it was marked. */
  readonly expiredAt?: Instant
  /** The wait before the next run, in milliseconds. */
  readonly delay?: number
  /** The number of retries, reschedules or replays after this one. */
  readonly count?: number
  /** The message of the error. */
  readonly error?: string
  /** Why, as the caller said. */
  readonly reason?: string
  /** Fields that an amendment changed. */
  readonly changed?: readonly string[]
  /** Of `park`: the step that waits. */
  readonly step?: string
}

/**
 * One thing that a task remembers between its runs. Entries are only appended. Of a step: `step` is its result; `sleep` and `wait` begin a
 * durable wait, which `wake`, `take` or `timeout` ends. `signal` is a signal that was sent to the task.
 */
export interface JournalEntry {
  /** The position in the journal, from 0. */
  readonly n: number
  readonly kind: 'step' | 'sleep' | 'wake' | 'wait' | 'take' | 'timeout' | 'signal'
  /** The name of the step, or of the signal. */
  readonly name: string
  readonly at: Instant
  /** The lease token that wrote it; for `signal` and `wake` the id of the call. A repeated write recognises itself by it. */
  readonly op: string
  /** Of a signal or wake: who sent it. */
  readonly by?: string
  /** The text of a result or of a signal; left out if it is undefined. */
  readonly value?: string
  /** How `value` is encoded, if not as JSON. */
  readonly encoding?: 'base64'
  /** Of `sleep` and `wait`: when it ends at the latest; null: never. */
  readonly until?: Instant | null
  /** Of `wait`: the name of the signal. */
  readonly signal?: string
  /** Of `signal` and of the `take` that took it. */
  readonly signalId?: string
  /** Of `take`: why the schema of the step refused the value. */
  readonly error?: string
}

/** What a task waits for in the middle of its handler. */
export interface Parked {
  /** The name of the step that waits. */
  readonly step: string
  /** A sleep, or the wait for a signal. */
  readonly kind: 'sleep' | 'signal'
  /** The name of the signal. */
  readonly signal?: string
  /** All signals that wake it, if the handler waits for several things at once. */
  readonly signals?: readonly string[]
  /** When it runs again at the latest; null: only after the signal. */
  readonly until: Instant | null
}

/** A task as it is stored. */
export interface TaskRecord {
  readonly id: string
  readonly queue: string
  readonly type: string
  /** JSON text, or base64 text if `encoding` says so. Stored verbatim. */
  readonly input: string
  readonly encoding: Encoding
  readonly output: string | null
  readonly outputEncoding: Encoding
  /** Why a completed task has no output, or why its schema rejects the output. */
  readonly outputError: string | null
  readonly status: TaskStatus
  readonly priority: number
  /** Whose work it is: a tenant, an account, a resource. Limits and fair shares go by it. */
  readonly group: string | null
  readonly availableAt: Instant
  readonly expiresAt: Instant | null
  readonly expiredAt: Instant | null
  readonly idempotencyKey: string | null
  /** The number of claims. Never decreases: it is the fence. */
  readonly attempts: number
  readonly retryCount: number
  /** null: unlimited. */
  readonly maxRetries: number | null
  readonly rescheduleCount: number
  /** null: unlimited. */
  readonly maxReschedules: number | null
  readonly replayCount: number
  readonly replayedAs: string | null
  readonly replayOf: string | null
  /** null: the default policy. */
  readonly retryPolicy: RetryPolicy | null
  /** Limit on one run in milliseconds; null: none. */
  readonly timeout: number | null
  readonly lease: Lease | null
  readonly cancelRequestedAt: Instant | null
  readonly lastError: TaskError | null
  /** JSON text of the last value that the handler reported. */
  readonly progress: string | null
  readonly createdAt: Instant
  readonly updatedAt: Instant
  readonly startedAt: Instant | null
  readonly completedAt: Instant | null
  readonly archivedFrom: TaskStatus | null
  readonly scheduleId: string | null
  readonly tags: Readonly<Record<string, string>> | null
  /** The durable wait that it is in. Every move clears it unless it sets it. */
  readonly parked: Parked | null
  /** +1 when a replay forgets the journal. */
  readonly generation: number
  /** It has a journal. Also known on a task from a claim or a list, which come without the entries. */
  readonly hasJournal: boolean
  /** Steps, sleeps, waits and signals. Empty on a task from a claim or a list. */
  readonly journal: readonly JournalEntry[]
  /** +1 on every move; every move compares it. */
  readonly revision: number
  /** Empty on a task from a claim or a list, which have no history. */
  readonly history: readonly HistoryEntry[]
  /** Opaque data of the store for the next write (an etag, a revision). */
  readonly mark?: unknown
}

/** Proof of holding the lease: the token, or (weaker) the worker id. */
export type Holder = { readonly token: string } | { readonly workerId: string }

/**
 * One move, decided but not yet written: what it sets, and the history entry to append. A store writes it if and only
 * if the task still has `revision` (and, where given, a lease that still ends at `leaseExpiresAt`).
 */
export interface Change {
  readonly id: string
  readonly queue: string
  readonly revision: number
  readonly from: TaskStatus
  readonly set: ChangeSet
  readonly entry: HistoryEntry
  /** To append to the journal. A change that sets `generation` forgets the entries before. */
  readonly journal?: readonly JournalEntry[]
  /** Set when a lapsed lease is taken: a renewal in between wins. */
  readonly leaseExpiresAt?: Instant
  /** A transaction of the caller may have locked the row: a store with locked rows reports a conflict and never waits. */
  readonly passesLocked?: true
  readonly mark?: unknown
}

export type ChangeSet = Partial<
  Omit<TaskRecord, 'id' | 'queue' | 'revision' | 'history' | 'journal' | 'mark' | 'createdAt'>
>

/** The first entry and the last 99 are kept. */
export const HISTORY_KEPT = 100

export const keptHistory = (entries: readonly HistoryEntry[]): readonly HistoryEntry[] =>
  entries.length <= HISTORY_KEPT ? entries : [entries[0]!, ...entries.slice(entries.length - (HISTORY_KEPT - 1))]

/** As a claim or a list returns it. */
export const withoutHistory = (task: TaskRecord): TaskRecord => ({ ...task, history: [], journal: [] })

/** Steps and signals are in the journal instead, because the history is bounded. */
export const isInHistory = ({ move }: Pick<HistoryEntry, 'move'>): boolean => move !== 'step' && move !== 'signal'

/** The record after the change, as a store must hold it. */
export const applyChange = (task: TaskRecord, change: Change): TaskRecord => ({
  ...task,
  parked: null,
  ...change.set,
  revision: change.revision + 1,
  history: isInHistory(change.entry) ? keptHistory([...task.history, change.entry]) : task.history,
  journal: journalAfter(task, change),
})

const journalAfter = ({ journal }: TaskRecord, { set, journal: added = [] }: Change): readonly JournalEntry[] => {
  if (set.generation !== undefined) return added
  return added.length === 0 ? journal : [...journal, ...added]
}
