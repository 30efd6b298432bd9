/** A task as the HTTP API sends it. */
import type { TaskError, TaskStatus } from '../core/task.ts'

/** Instants are ISO 8601. `Input` and `Output` are those of the definition. */
export interface RemoteTask<Input = unknown, Output = unknown> {
  /** A UUID. */
  readonly id: string
  /** The queue that it was submitted to. */
  readonly queue: string
  /** Which handler runs it. */
  readonly type: string
  /** pending, running, completed, failed, cancelled, expired or archived. */
  readonly status: TaskStatus
  /** The most specific state at the moment of the answer: scheduled, ready, retrying, parked, dead, or the status. */
  readonly view: string
  /** null if the token may not see payloads; `payloads` is then 'withheld'. */
  readonly input: Input
  /** What the handler returned; null until it has completed. */
  readonly output: Output | null
  /** Why a completed task has no output. */
  readonly outputError: string | null
  /** The last value that its handler reported. */
  readonly progress: unknown
  /** Whether the token may see payloads, and whether some of their values are hidden. */
  readonly payloads: 'shown' | 'redacted' | 'withheld'
  /** -1000 to 1000, higher first. */
  readonly priority: number
  /** Whose work it is. */
  readonly group: string | null
  /** Not claimable before this instant. */
  readonly availableAt: string
  /** Expires then unless it was claimed; null: never. */
  readonly expiresAt: string | null
  /** The key that it was submitted with. */
  readonly idempotencyKey: string | null
  /** How often it was claimed. */
  readonly attempts: number
  /** Retries used. */
  readonly retryCount: number
  /** Retries after the first run; null: unlimited. */
  readonly maxRetries: number | null
  /** Durable sleeps so far. */
  readonly rescheduleCount: number
  /** Milliseconds; null: none. */
  readonly timeout: number | null
  /** A running task was asked to stop then. */
  readonly cancelRequestedAt: string | null
  /** The error of the latest failed run. */
  readonly lastError: (Omit<TaskError, 'at'> & { readonly at: string }) | null
  /** When it was submitted. */
  readonly createdAt: string
  /** When it ended, in whatever status. */
  readonly completedAt: string | null
  /** The status that it had before it was archived. */
  readonly archivedFrom: TaskStatus | null
  /** Empty if it has none. */
  readonly tags: Readonly<Record<string, string>>
  /** One more with every move. */
  readonly revision: number
  /** True if a submit returned an existing task. */
  readonly deduplicated?: boolean
  /** Of a submit: it changed a task that waited. */
  readonly coalesced?: boolean
}

interface Encoded {
  readonly encoding?: string
  readonly outputEncoding?: string
  readonly input?: unknown
  readonly output?: unknown
}

/** Bytes travel as base64 text. */
export const taskOf = <Input, Output>(body: Encoded): RemoteTask<Input, Output> => {
  const { encoding, outputEncoding, input, output } = body
  return {
    ...body,
    input: encoding === 'base64' && typeof input === 'string' ? bytesOf(input) : input,
    output: outputEncoding === 'base64' && typeof output === 'string' ? bytesOf(output) : output,
  } as unknown as RemoteTask<Input, Output>
}

/** A payload as fields of a body: `input` and `encoding`. */
export const payloadFields = (name: string, value: unknown): Record<string, unknown> =>
  value instanceof Uint8Array ? { [name]: textOf(value), encoding: 'base64' } : { [name]: value }

const bytesOf = (text: string): Uint8Array => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))

const textOf = (bytes: Uint8Array): string => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
