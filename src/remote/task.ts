/** A task as the HTTP API sends it. */
import type { TaskError, TaskStatus } from '../core/task.ts'

/** Instants are ISO 8601. `Input` and `Output`: of the definition. */
export interface RemoteTask<Input = unknown, Output = unknown> {
  readonly id: string
  readonly queue: string
  readonly type: string
  readonly status: TaskStatus
  /** The most specific state at the moment of the answer: scheduled, ready, retrying, parked, dead, or the status. */
  readonly view: string
  /** null if the token may not see payloads: then `payloads` is 'withheld'. */
  readonly input: Input
  readonly output: Output | null
  readonly outputError: string | null
  readonly progress: unknown
  readonly payloads: 'shown' | 'redacted' | 'withheld'
  readonly priority: number
  readonly group: string | null
  readonly availableAt: string
  readonly expiresAt: string | null
  readonly idempotencyKey: string | null
  readonly attempts: number
  readonly retryCount: number
  readonly maxRetries: number | null
  readonly rescheduleCount: number
  /** Milliseconds; null: none. */
  readonly timeout: number | null
  readonly cancelRequestedAt: string | null
  readonly lastError: (Omit<TaskError, 'at'> & { readonly at: string }) | null
  readonly createdAt: string
  readonly completedAt: string | null
  readonly archivedFrom: TaskStatus | null
  readonly tags: Readonly<Record<string, string>>
  readonly revision: number
  /** Of a submit: an existing task came back. */
  readonly deduplicated?: boolean
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
