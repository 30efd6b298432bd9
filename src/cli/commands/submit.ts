/** `holdfast submit`: submits one task. Validates everything before a store is created. */
import { connect, type Duration, HoldfastError, type SubmitOptions } from '../../index.ts'
import { EXIT } from '../output/exit-codes.ts'
import { err, out, outJson } from '../output/render.ts'
import { given, inputValue, instantText, integer, limit, required, retryPolicy, tags } from '../program/input.ts'
import { type GlobalOptions, withClient } from '../program/session.ts'

interface Options extends GlobalOptions {
  readonly type?: string
  readonly input?: string
  readonly queue?: string
  readonly priority?: string
  readonly group?: string
  readonly ttl?: Duration
  readonly expiresAt?: string
  readonly at?: string
  readonly delay?: Duration
  readonly maxRetries?: string
  readonly maxAttempts?: string
  readonly retryPolicy?: string
  readonly maxReschedules?: string
  readonly timeout?: string
  readonly key?: string
  readonly idempotencyTtl?: Duration
  readonly onMismatch?: string
  readonly id?: string
  readonly coalesce?: string
  readonly coalesceDelay?: Duration
  readonly coalesceMaxWait?: Duration
  readonly tag?: readonly string[]
}

export const run = async (_: readonly string[], options: Options): Promise<number> => {
  const type = required(options.type, '-t, --type')
  const text = required(options.input, '-i, --input')
  const wishes = submitOptions(options)
  const input = await inputValue(text)
  await rehearse(type, input, wishes)
  return withClient(options, { create: true }, async (client) => {
    const task = await client.submit(type, input, wishes)
    if (options.json) outJson(task)
    else {
      out(task.id)
      if (task.coalesced) err(`the key '${options.coalesce}' has a task that waits: this is it`)
      if (task.deduplicated) err(`the key '${options.key}' already exists: this is its task (${task.status})`)
    }
    return EXIT.ok
  })
}

/** Validates on a temporary store: a refused task must not leave a new, empty store behind. */
const rehearse = async (type: string, input: unknown, wishes: SubmitOptions): Promise<void> => {
  const client = await connect('memory:')
  try {
    await client.submit(type, input, wishes)
  } finally {
    await client.close()
  }
}

const submitOptions = (options: Options): SubmitOptions => ({
  ...given('queue', options.queue),
  ...given('priority', options.priority, integer),
  ...given('group', options.group),
  ...given('ttl', options.ttl),
  ...given('expiresAt', options.expiresAt, instantText),
  ...given('at', options.at, instantText),
  ...given('delay', options.delay),
  ...given('maxRetries', options.maxRetries, limit),
  ...given('maxAttempts', options.maxAttempts, integer),
  ...given('retryPolicy', options.retryPolicy, retryPolicy),
  ...given('maxReschedules', options.maxReschedules, limit),
  ...given('timeout', options.timeout, (text) => (text.toLowerCase() === 'none' ? null : text)),
  ...given('idempotencyKey', options.key),
  ...given('idempotencyTtl', options.idempotencyTtl),
  ...given('onMismatch', options.onMismatch),
  ...given('id', options.id),
  ...given('coalesce', coalesceOf(options)),
  ...given('tags', options.tag, tags),
})

const coalesceOf = ({ coalesce: key, coalesceDelay: delay, coalesceMaxWait: maxWait }: Options): object | undefined => {
  if (key !== undefined) return { key, ...given('delay', delay), ...given('maxWait', maxWait) }
  if (delay === undefined && maxWait === undefined) return undefined
  throw new HoldfastError('INVALID_OPTION', '--coalesce is required with --coalesce-delay and --coalesce-max-wait', {
    field: '--coalesce',
  })
}
