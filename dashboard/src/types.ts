/** The parts of the API that the dashboard shows. /openapi.json has all of it. */

type Status = 'pending' | 'running' | 'completed' | 'failed' | 'cancelled' | 'expired' | 'archived'
export type View = Status | 'scheduled' | 'ready' | 'retrying' | 'parked' | 'dead'

export interface Entry {
  readonly n: number
  readonly at: string
  readonly move: string
  readonly to: Status
  readonly by: string
  readonly availableAt?: string
  readonly expiresAt?: string
  readonly expiredAt?: string
  readonly delay?: number
  readonly count?: number
  readonly error?: string
  readonly reason?: string
  readonly changed?: readonly string[]
  readonly step?: string
}

export interface Change extends Entry {
  readonly id: string
  readonly type: string
  readonly queue: string
}

export interface ErrorCause {
  readonly name: string
  readonly message: string
  readonly code?: string
  readonly detail?: string
  readonly stack?: string
  readonly cause?: ErrorCause
  readonly errors?: readonly ErrorCause[]
}

interface TaskError extends ErrorCause {
  readonly at: string
  readonly attempt: number
}

export interface Task {
  readonly id: string
  readonly queue: string
  readonly type: string
  readonly status: Status
  readonly view: View
  readonly input: unknown
  readonly encoding: 'json' | 'base64'
  readonly output: unknown
  readonly progress: unknown
  readonly payloads: Payloads
  readonly priority: number
  readonly group: string | null
  readonly availableAt: string
  readonly expiresAt: string | null
  readonly expiredAt: string | null
  readonly idempotencyKey: string | null
  readonly attempts: number
  readonly retryCount: number
  readonly maxRetries: number | null
  readonly rescheduleCount: number
  readonly maxReschedules: number | null
  readonly replayCount: number
  readonly replayedAs: string | null
  readonly replayOf: string | null
  readonly timeout: number | null
  readonly lease: {
    readonly workerId: string
    readonly claimedAt: string
    readonly expiresAt: string
    readonly deadline: string | null
  } | null
  readonly cancelRequestedAt: string | null
  readonly lastError: TaskError | null
  readonly outputError: string | null
  readonly createdAt: string
  readonly updatedAt: string
  readonly startedAt: string | null
  readonly completedAt: string | null
  readonly scheduleId: string | null
  readonly tags: Readonly<Record<string, string>> | null
  readonly history: readonly Entry[]
  /** What a parked task waits for. */
  readonly parked: {
    readonly step: string
    readonly kind: 'sleep' | 'signal'
    readonly until: string | null
    readonly signal?: string
    readonly signals?: readonly string[]
  } | null
  readonly steps: readonly Step[]
  readonly signals: readonly { readonly id: string; readonly name: string; readonly at: string; readonly by?: string }[]
}

export interface Step {
  readonly name: string
  readonly kind: 'step' | 'sleep' | 'signal'
  readonly status: 'done' | 'sleeping' | 'waiting' | 'timed-out' | 'refused'
  readonly at: string
  readonly until?: string | null
  readonly signal?: string
  readonly value?: unknown
  readonly error?: string
}

type Payloads = 'shown' | 'redacted' | 'withheld'

export interface TaskPage {
  readonly tasks: readonly Task[]
  readonly cursor: string | null
}

export interface Count {
  readonly count: number
  readonly capped: boolean
}

export interface Counts {
  readonly ready: number
  readonly scheduled: number
  readonly retrying: number
  readonly parked: number
  readonly running: number
  readonly completed: number
  readonly failed: number
  readonly cancelled: number
  readonly expired: number
  readonly archived: number
}

export interface Pause {
  readonly at: string
  readonly by: string
  readonly reason?: string
  readonly until?: string
}

export interface Limits {
  readonly concurrency?: number
  readonly perGroup?: number
  readonly fair?: boolean
  readonly rate?: string
  readonly ratePerGroup?: string
  readonly burst?: number
}

export interface Queue extends Counts {
  readonly queue: string
  readonly paused: boolean
  readonly pause: Pause | null
  /** By group. */
  readonly groupPauses: Readonly<Record<string, Pause>>
  readonly limits: Limits | null
  /** The counts that are lower bounds. */
  readonly capped: readonly (keyof Counts)[]
}

interface Percentiles {
  readonly p50: number
  readonly p95: number
}

/** What happened in a stretch of time. */
export interface ChartTotals {
  readonly submitted: number
  readonly started: number
  readonly completed: number
  readonly retried: number
  readonly died: number
  readonly ended: number
  readonly wait: Percentiles | null
  readonly run: Percentiles | null
}

export interface ChartPoint extends ChartTotals {
  readonly at: string
  readonly depth: { readonly ready: number; readonly running: number; readonly later: number } | null
}

export interface Charts {
  readonly step: number
  readonly from: string
  readonly until: string
  readonly points: readonly ChartPoint[]
  readonly queues: Readonly<Record<string, ChartTotals>>
  readonly types: Readonly<Record<string, ChartTotals>>
}

export interface WorkerInfo {
  readonly id: string
  readonly types: readonly string[]
  readonly queues: readonly string[]
  readonly concurrency: number
  readonly version: string
  readonly host: string
  readonly pid: number
  readonly startedAt: string
  readonly beatAt: string
  readonly stuck: { readonly count: number }
  readonly claiming: boolean
  /** Runs that ended. */
  readonly recent: { readonly seconds: number; readonly completed: number; readonly failed: number }
  /** http if it claims through a server. */
  readonly via?: string
}

/** With its task, or the reason why there is none. */
export interface PastSlot {
  readonly slot: string
  readonly taskId?: string
  readonly reason?: 'overlap' | 'missed'
}

export interface Schedule {
  readonly id: string
  readonly type: string
  readonly input: unknown
  readonly payloads: Payloads
  readonly cron: string | null
  readonly timezone: string | null
  readonly every: number | null
  readonly mode: 'fixed-rate' | 'fixed-delay' | null
  readonly overlap: string
  readonly catchUp: string
  readonly encoding: 'json' | 'base64'
  readonly options: { readonly queue?: string }
  readonly updatedAt: string
  readonly paused: boolean
  readonly nextAt: string | null
  readonly lastTaskId: string | null
  readonly lastSkipped: { readonly slot: string; readonly reason: string } | null
  /** The oldest first. */
  readonly past: readonly PastSlot[]
}

export interface DeadGroup {
  readonly fingerprint: string
  readonly name: string
  readonly pattern: string
  readonly count: number
  readonly firstSeenAt: string
  readonly lastSeenAt: string
  readonly types: readonly string[]
  readonly sample: Task
}

export interface QueueDetail {
  readonly queue: Queue
  readonly oldestReady: string | null
  readonly holders: readonly {
    readonly group: string | null
    readonly running: number
    readonly workers: readonly string[]
  }[]
  readonly isMore: boolean
}

export interface Health {
  readonly findings: readonly {
    readonly check: string
    readonly verdict: 'warning' | 'problem'
    readonly found: string
    readonly fix: string | null
  }[]
  readonly oldest: { readonly queue: string; readonly since: string } | null
}

export interface Why {
  readonly reason: string
  readonly sentence: string | null
  readonly queuePaused: boolean
  readonly workers: readonly string[]
}

export interface Info {
  readonly address: string
  readonly now: string
  readonly readOnly: boolean
  readonly rights: readonly string[]
  /** Who the caller is, in histories. */
  readonly name: string | null
  /** The caller is a browser that has logged in, and can log out. */
  readonly session: boolean
}

export interface LoggedIn {
  readonly id: string
  readonly name: string | null
  readonly startedAt: string
  readonly seenAt: string
  readonly isOwn: boolean
}
