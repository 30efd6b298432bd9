/** The JSON Schemas of the OpenAPI document. */
import { COUNTED_VIEWS } from '../../index.ts'

export interface Schema {
  readonly type?: string | readonly string[]
  readonly description?: string
  readonly enum?: readonly (string | null)[]
  readonly format?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | Schema
  readonly items?: Schema
  readonly maxItems?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly anyOf?: readonly Schema[]
  readonly default?: unknown
  readonly $ref?: string
}

export const ref = (name: keyof typeof SCHEMAS): Schema => ({ $ref: `#/components/schemas/${name}` })

export const text = (description?: string): Schema => ({ type: 'string', ...(description && { description }) })
export const whole = (description?: string): Schema => ({ type: 'integer', ...(description && { description }) })
export const flag = (description?: string): Schema => ({ type: 'boolean', ...(description && { description }) })
export const listOf = (items: Schema, maxItems?: number): Schema => ({
  type: 'array',
  items,
  ...(maxItems === undefined ? null : { maxItems }),
})
export const instant: Schema = { type: 'string', format: 'date-time' }
const maybe = ({ type, ...schema }: Schema): Schema => ({ ...schema, type: [type as string, 'null'] })
/** No type: any JSON value. */
export const anything = (description: string): Schema => ({ description })
export const duration = anything("'500ms', '30s', '5m', '1h30m', '7d', { minutes: 5 }, or 0")
/** An object without additional properties; those in `optional` may be omitted. */
export const shape = (
  properties: Readonly<Record<string, Schema>>,
  optional: Readonly<Record<string, Schema>> = {},
): Schema => ({
  type: 'object',
  properties: { ...properties, ...optional },
  required: Object.keys(properties),
  additionalProperties: false,
})

const STATUS = ['pending', 'running', 'completed', 'failed', 'cancelled', 'expired', 'archived'] as const
const VIEW = [...STATUS, 'scheduled', 'ready', 'retrying', 'parked', 'dead'] as const
const status: Schema = { type: 'string', enum: STATUS }
const withheld = 'null if the caller may not see payloads; then `payloads` is "withheld"'

const historyEntry = shape(
  { n: whole(), at: instant, move: text(), to: status, by: text() },
  {
    availableAt: instant,
    expiresAt: instant,
    expiredAt: instant,
    delay: whole('milliseconds'),
    count: whole(),
    error: text(),
    reason: text(),
    changed: listOf(text('a field that an amendment changed')),
    step: text('the step that a parked task waits in'),
  },
)

const value = anything(
  'any JSON value; base64 text if it was bytes; omitted if there is none; null without the right to see payloads',
)
const until: Schema = { ...instant, type: ['string', 'null'], description: 'null: it waits forever' }

const step = shape(
  {
    name: text(),
    kind: { type: 'string', enum: ['step', 'sleep', 'signal'] },
    status: { type: 'string', enum: ['done', 'sleeping', 'waiting', 'timed-out', 'refused'] },
    at: { ...instant, description: 'when it was recorded; of a sleep or a wait that is not over, when it began' },
  },
  {
    until,
    signal: text('the name of the signal'),
    value,
    encoding: { type: 'string', enum: ['base64'], description: 'to a worker alone: the value was bytes' },
    error: text('why the schema refused the signal'),
  },
)

const signal = shape({ id: text(), name: text(), at: instant }, { by: text(), value })

const moment = shape(
  {
    at: instant,
    kind: { type: 'string', enum: ['step', 'sleep', 'wake', 'wait', 'take', 'timeout', 'signal'] },
    name: text('of the step; of a signal that arrived, its own'),
  },
  {
    by: text('who sent the signal, or ended the sleep'),
    until,
    signal: text('the signal that it waits for'),
    signalId: text(),
    size: whole('characters of the value'),
    error: text('why the schema refused the signal'),
  },
)

const parked = shape(
  { step: text(), kind: { type: 'string', enum: ['sleep', 'signal'] }, until },
  { signal: text('the name of the signal'), signals: listOf(text('all signals that wake it')) },
)

/** Fields of the error itself, its causes and its parts. */
const ERROR_EXTRAS = {
  code: text('from the driver or the runtime'),
  detail: text('the detail of a database driver'),
  stack: text(),
  cause: ref('ErrorCause'),
  errors: listOf(ref('ErrorCause')),
}
const errorCause = shape({ name: text(), message: text() }, ERROR_EXTRAS)
const taskError = shape({ name: text(), message: text(), at: instant, attempt: whole() }, ERROR_EXTRAS)

const task = shape(
  {
    id: { type: 'string', format: 'uuid' },
    queue: text(),
    type: text(),
    status,
    view: { type: 'string', enum: VIEW, description: 'the most specific state at this moment' },
    input: anything(`any JSON value; base64 text when encoding says so; ${withheld}`),
    encoding: { type: 'string', enum: ['json', 'base64'] },
    output: anything(`any JSON value; ${withheld}`),
    outputError: maybe(text('why a completed task has no output, or why its schema rejects the output')),
    progress: anything('the last value that the handler reported'),
    payloads: {
      type: 'string',
      enum: ['shown', 'redacted', 'withheld', 'omitted'],
      description: 'omitted: a summary, with null for input and output; the task by its id has them',
    },
    priority: whole(),
    group: maybe(text('whose work it is')),
    availableAt: instant,
    expiresAt: maybe(instant),
    expiredAt: maybe(instant),
    idempotencyKey: maybe(text()),
    attempts: whole('number of claims: the fence'),
    retryCount: whole(),
    maxRetries: { type: ['integer', 'null'], description: 'null: unlimited' },
    rescheduleCount: whole(),
    maxReschedules: { type: ['integer', 'null'] },
    replayCount: whole(),
    replayedAs: maybe(text()),
    replayOf: maybe(text()),
    retryPolicy: shape({ base: whole('milliseconds'), multiplier: { type: 'number' }, max: whole(), jitter: text() }),
    timeout: { type: ['integer', 'null'], description: 'milliseconds of one run' },
    lease: {
      anyOf: [
        shape({
          workerId: text(),
          claimedAt: instant,
          expiresAt: instant,
          ttl: whole('milliseconds: the length at the time of the claim'),
          deadline: { anyOf: [instant, { type: 'null' }] },
        }),
        { type: 'null' },
      ],
      description: 'the current holder; only the claimer gets the token',
    },
    cancelRequestedAt: maybe(instant),
    lastError: { anyOf: [taskError, { type: 'null' }] },
    createdAt: instant,
    updatedAt: instant,
    startedAt: maybe(instant),
    completedAt: maybe(instant),
    archivedFrom: { type: ['string', 'null'], enum: [...STATUS, null] },
    scheduleId: maybe(text()),
    tags: { type: 'object', additionalProperties: text() },
    parked: { anyOf: [parked, { type: 'null' }], description: 'what its handler waits for in the middle of its work' },
    generation: whole('how often a replay has forgotten its steps'),
    steps: { ...listOf({ $ref: '#/components/schemas/Step' }), description: 'empty in lists and claims' },
    signals: { ...listOf(signal), description: 'those that no step has taken; empty in lists and claims' },
    revision: whole(),
    history: { ...listOf(historyEntry), description: 'empty in lists and claims' },
  },
  {
    deduplicated: flag('it already existed under the idempotency key'),
    coalesced: flag('it already waited under the coalesce key'),
  },
)

const counts = Object.fromEntries(COUNTED_VIEWS.map((view) => [view, whole()]))

const schedule = shape({
  id: text(),
  incarnation: text(),
  type: text(),
  input: anything('the input of every task'),
  encoding: { type: 'string', enum: ['json', 'base64'] },
  payloads: { type: 'string', enum: ['shown', 'redacted', 'withheld'] },
  cron: maybe(text()),
  timezone: maybe(text()),
  every: { type: ['integer', 'null'], description: 'milliseconds' },
  mode: { type: ['string', 'null'], enum: ['fixed-rate', 'fixed-delay', null] },
  overlap: { type: 'string', enum: ['skip', 'allow'] },
  catchUp: { type: 'string', enum: ['skip', 'last', 'all'] },
  options: { type: 'object' },
  paused: flag(),
  cursor: instant,
  nextAt: maybe(instant),
  lastTaskId: maybe(text()),
  lastSkipped: {
    anyOf: [
      shape({ slot: instant, reason: { type: 'string', enum: ['overlap', 'missed'] } }, { taskId: text() }),
      { type: 'null' },
    ],
  },
  past: {
    ...listOf(shape({ slot: instant }, { taskId: text(), reason: { type: 'string', enum: ['overlap', 'missed'] } })),
    description:
      'the last 20 slots that have passed, the oldest first: each with its task, or with the reason for none',
  },
  createdAt: instant,
  updatedAt: instant,
})

const worker = shape(
  {
    id: text(),
    types: listOf(text()),
    queues: listOf(text()),
    concurrency: whole(),
    version: text(),
    host: text(),
    pid: whole(),
    startedAt: instant,
    beatAt: instant,
    stuck: shape({
      count: whole('handlers that did not stop at their timeout, cancel or lost lease'),
      tasks: listOf(shape({ id: text(), type: text(), queue: text(), attempt: whole(), since: instant })),
    }),
    claiming: flag('false if as many handlers are stuck as it has slots: it claims nothing'),
    recent: {
      ...shape({ seconds: whole('the time over which they are counted'), completed: whole(), failed: whole() }),
      description: 'runs that ended',
    },
  },
  { via: text('http if it claims through a server') },
)

const deadGroup = shape({
  fingerprint: text('pass it to replay or purge as `group`'),
  name: text(),
  pattern: text('the message without numbers, ids and quoted text'),
  count: whole(),
  firstSeenAt: instant,
  lastSeenAt: instant,
  types: listOf(text()),
  sample: { $ref: '#/components/schemas/Task' },
})

const error = shape({
  error: shape({ code: text(), message: text(), fix: text(), details: { type: 'object' } }),
})

const change = shape(
  { id: text(), type: text(), queue: text(), n: whole(), at: instant, move: text(), to: status, by: text() },
  {
    availableAt: instant,
    expiresAt: instant,
    expiredAt: instant,
    delay: whole(),
    count: whole(),
    error: text('requires the right to see payloads'),
    reason: text('requires the right to see payloads'),
    changed: listOf(text()),
    step: text(),
  },
)

const spread = {
  anyOf: [shape({ p50: { type: 'number' }, p95: { type: 'number' }, max: { type: 'number' } }), { type: 'null' }],
  description: 'milliseconds; null if nothing happened',
} as const

const tick = shape({
  at: instant,
  moves: { type: 'object', additionalProperties: whole(), description: 'the number of each move in this second' },
  wait: { ...spread, description: 'milliseconds from due to claimed; null if nothing was claimed' },
  duration: { ...spread, description: 'milliseconds from claimed to ended; null if nothing ended' },
})

/** Names the counts that are lower bounds. */
export const capped: Schema = {
  type: 'array',
  items: { type: 'string', enum: COUNTED_VIEWS },
  description: 'counts that are lower bounds',
}

const rate = text('a count and a duration: 60/1m')
/** As `queue(name).limit()` takes them. */
export const LIMITS: Readonly<Record<string, Schema>> = {
  concurrency: whole('running tasks of the queue, over all workers'),
  perGroup: whole('running tasks of one group'),
  fair: flag('groups take turns'),
  rate,
  ratePerGroup: rate,
  burst: whole('starts of a rate that may come at once'),
}
/** With who set them, and when. */
export const maybeLimits: Schema = { anyOf: [shape({}, { ...LIMITS, at: text(), by: text() }), { type: 'null' }] }

const pause = shape({ at: text(), by: text() }, { reason: text(), until: instant })

export const SCHEMAS = {
  ErrorCause: errorCause,
  Task: task,
  HistoryEntry: historyEntry,
  Step: step,
  StepMoment: moment,
  QueueStats: shape({
    queue: text(),
    paused: flag(),
    pausedUntil: { type: ['string', 'null'], format: 'date-time' },
    limits: maybeLimits,
    pausedGroups: listOf(text()),
    pause: { anyOf: [pause, { type: 'null' }], description: 'who paused it, when and why' },
    groupPauses: { type: 'object', additionalProperties: pause, description: 'by group' },
    ...counts,
    capped,
  }),
  Schedule: schedule,
  Worker: worker,
  DeadGroup: deadGroup,
  Change: change,
  Tick: tick,
  Error: error,
} as const satisfies Record<string, Schema>

export const COUNTS: Readonly<Record<string, Schema>> = counts

export const taskOptions: Readonly<Record<string, Schema>> = {
  queue: text(),
  priority: whole('-1000 to 1000, higher first'),
  group: text('whose work it is, for limits and fair shares'),
  at: anything('do not run before this instant (ISO 8601)'),
  delay: duration,
  ttl: duration,
  expiresAt: anything('expires if not claimed before this instant'),
  maxRetries: { type: ['integer', 'null'] },
  maxAttempts: whole(),
  maxReschedules: { type: ['integer', 'null'] },
  retryPolicy: { type: ['object', 'string'] },
  timeout: duration,
  tags: { type: 'object' },
}
