/** The parts of the API that the dashboard shows. /openapi.json has all of it. */

type Status = 'pending' | 'running' | 'completed' | 'failed' | 'cancelled' | 'expired' | 'archived'
export type View = Status | 'scheduled' | 'ready' | 'retrying' | 'dead'

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
  readonly running: number
  readonly completed: number
  readonly failed: number
  readonly cancelled: number
  readonly expired: number
  readonly archived: number
}

export interface Queue extends Counts {
  readonly queue: string
  readonly paused: boolean
  /** The counts that are lower bounds. */
  readonly capped: readonly (keyof Counts)[]
}

interface Spread {
  readonly p50: number
  readonly p95: number
  readonly max: number
}

export interface Tick {
  readonly at: string
  readonly moves: Readonly<Record<string, number>>
  readonly wait: Spread | null
  readonly duration: Spread | null
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
  readonly paused: boolean
  readonly nextAt: string | null
  readonly lastTaskId: string | null
  readonly lastSkipped: { readonly slot: string; readonly reason: string } | null
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
}
