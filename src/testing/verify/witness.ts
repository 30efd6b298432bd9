/** Writes down what handlers and callers saw, outside the store, so that the store is not its own only witness. */
import { randomUUID } from 'node:crypto'
import { mkdirSync, openSync, writeSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { isHoldfastError } from '../../core/errors.ts'
import { RescheduleError } from '../../core/failure.ts'
import { Task } from '../../core/observe/task-view.ts'
import { EncodedOutput, encodeOutput } from '../../core/values/output.ts'
import type { TaskContext } from '../../runtime/handler.ts'
import { Attempt } from '../../runtime/worker/attempt.ts'
import type { Middleware } from '../../runtime/worker/middleware.ts'
import { storedDigest, valueDigest } from './digests.ts'
import { type ServesLine, WITNESS_ENDING, type WitnessLine } from './witness-lines.ts'

type Unstamped<Line> = Line extends WitnessLine ? Omit<Line, 'at' | 'process'> : never

/** The log of one process. Each line is handed to the operating system before the call returns, so it survives kill -9. */
export interface Witness {
  /** `worker.use(witness.runs)`: add it last, so that it is next to the handler. */
  readonly runs: Middleware
  /**
   * Calls submit or submitMany, and returns what they return: `await witness.submit(() => client.submit('mail', input))`. Before a call of submitMany
   * pass how many tasks it submits: `await witness.submit(() => client.submitMany(items), items.length)`.
   */
  submit<Result>(call: () => Promise<Result>, tasks?: number): Promise<Result>
  /** The application removed these tasks. */
  removed(...ids: readonly string[]): void
  /** The queues and types that this worker serves. */
  serves(worker: Pick<ServesLine, 'worker' | 'queues' | 'types'>): void
  /** A process of this host was seen to be dead, for example by its supervisor. */
  down(pid: number): void
  /** Logs an unhandled rejection: `process.on('unhandledRejection', witness.unhandled)`. */
  readonly unhandled: (reason: unknown) => void
}

/** Opens a log of its own for this process in the folder, which is made if it is missing. */
export const openWitness = (folder: string): Witness => {
  mkdirSync(folder, { recursive: true })
  const file = openSync(join(folder, `${process.pid}-${randomUUID().slice(0, 8)}${WITNESS_ENDING}`), 'wx', 0o600)
  const write = (line: Unstamped<WitnessLine>): void => {
    writeSync(file, `${JSON.stringify({ ...line, at: Date.now(), process: processOf(process.pid) })}\n`)
  }
  return {
    runs: async (ctx, next) => {
      const run = { task: ctx.task.id, fence: ctx.fence }
      const { type, queue, lease } = ctx.task
      write({
        what: 'start',
        ...run,
        worker: ctx.workerId,
        type,
        queue,
        ...digested('input', () => valueDigest(ctx.task.input)),
        ...(lease === null ? null : { until: lease.expiresAt }),
      })
      try {
        const returned = await next()
        if (returned instanceof RescheduleError) write({ what: 'threw', ...run })
        else write({ what: 'end', ...run, ...digested('output', () => outputDigest(ctx, returned)) })
        return returned
      } catch (error) {
        write({ what: 'threw', ...run })
        throw error
      }
    },
    submit: async (submitting, tasks = 1) => {
      const call = randomUUID()
      write({ what: 'submitting', call, tasks })
      const refused = (error: unknown, of: number): void =>
        write({ what: 'refused', call, code: isHoldfastError(error) ? error.code : null, tasks: of })
      const submitted = (task: Task): void =>
        write({
          what: 'submitted',
          call,
          task: task.id,
          key: task.idempotencyKey,
          ...digested('input', () => valueDigest(task.input)),
        })
      try {
        const result = await submitting()
        for (const one of Array.isArray(result) ? (result as readonly unknown[]) : [result]) {
          if (one instanceof Task) submitted(one)
          else if (isEach(one)) one.ok ? submitted(one.task) : refused(one.error, 1)
        }
        return result
      } catch (error) {
        refused(error, tasks)
        throw error
      }
    },
    removed: (...ids) => {
      for (const task of ids) write({ what: 'removed', task })
    },
    serves: (worker) => write({ what: 'serves', ...worker }),
    down: (pid) => write({ what: 'down', dead: processOf(pid) }),
    unhandled: (reason) => write({ what: 'unhandled', message: String(reason).slice(0, 1_000) }),
  }
}

const processOf = (pid: number): string => `${hostname()}/${pid}`

type Each = { readonly ok: true; readonly task: Task } | { readonly ok: false; readonly error: unknown }

const isEach = (value: unknown): value is Each => typeof value === 'object' && value !== null && 'ok' in value

/** A payload that cannot be written as JSON has no digest, and is not compared. */
const digested = <Name extends string>(name: Name, digest: () => string | null): { [Key in Name]?: string } => {
  try {
    const text = digest()
    return text === null ? {} : ({ [name]: text } as { [Key in Name]: string })
  } catch {
    return {}
  }
}

const outputDigest = (ctx: TaskContext, returned: unknown): string | null => {
  // The output is what ctx.complete was given.
  if (ctx instanceof Attempt && ctx.joinedEnd !== null) return null
  const { text, encoding } =
    returned instanceof EncodedOutput ? returned.output : encodeOutput(returned, Number.POSITIVE_INFINITY)
  return text === null ? null : storedDigest(text, encoding)
}
