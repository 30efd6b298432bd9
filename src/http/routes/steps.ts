/** Durable steps for workers in other languages. Every call needs the token of the claim, may be repeated, and answers what to do next. */
import type { Duration, ShownStep, TaskLease } from '../../index.ts'
import type { Call, JsonRoute, Route } from '../route.ts'
import { encoding, payloadOf } from '../wire/payloads.ts'
import { anything, duration, listOf, ref, type Schema, shape, text } from '../wire/schemas.ts'
import { heldBy } from './leases.ts'

type Json = Record<string, unknown>

const stepRoute = (
  { path, name, summary }: { readonly path: string; readonly name: string; readonly summary: string },
  { required = {}, optional = {}, answer }: { required?: Fields; optional?: Fields; answer: Schema },
  run: (held: TaskLease, body: Json) => Promise<Json>,
): JsonRoute => ({
  method: 'post',
  path: `/tasks/{id}/${path}`,
  name,
  summary,
  right: 'work',
  body: shape({ token: text('from the claim'), ...required }, optional),
  answer,
  refuses: ['TASK_NOT_FOUND', 'STALE_LEASE', 'STEP_INVALID', 'STEPS_TOO_LARGE', 'INVALID_DURATION', 'STORE_CONFLICT'],
  run: async (call: Call) => run(await heldBy(call), call.body),
})

type Fields = Readonly<Record<string, Schema>>

const states = (...some: readonly string[]): Schema => ({ type: 'string', enum: some })
const name = text('of the step: each is used once in a run')
const value = anything('any JSON value; base64 text if encoding says so; omitted if it is undefined')
const until: Schema = {
  type: ['string', 'null'],
  format: 'date-time',
  description: 'when the task is due again at the latest; null: only after the signal',
}

const iso = (at: number): string => new Date(at).toISOString()
const valued = (given: unknown): Json => {
  if (given === undefined) return {}
  return given instanceof Uint8Array
    ? { value: Buffer.from(given).toString('base64'), encoding: 'base64' }
    : { value: given }
}
const waited = <Outcome extends object>(outcome: Outcome): Json => {
  const { until: end, ...rest } = outcome as { readonly until?: number | null }
  return { ...rest, ...(end === undefined ? null : { until: end === null ? null : iso(end) }) }
}

const shownStep = ({ value: given, at, until: end, ...step }: ShownStep): Json => ({
  ...step,
  at: iso(at),
  ...(end === undefined ? null : { until: end === null ? null : iso(end) }),
  ...valued(given),
})

export const STEPS: readonly Route[] = [
  stepRoute(
    {
      path: 'steps',
      name: 'readSteps',
      summary: 'The steps that this run and earlier ones have recorded, with their values',
    },
    { answer: shape({ steps: listOf(ref('Step')) }) },
    async ({ steps }) => ({ steps: (await steps.list()).map(shownStep) }),
  ),
  stepRoute(
    {
      path: 'step',
      name: 'step',
      summary:
        'Without a value: the recorded result of a step, or the key to run it with. With a value: records it; the first result stands',
    },
    {
      required: { name },
      optional: { value: anything('the result of the step: any JSON value'), encoding },
      answer: shape(
        { state: states('recorded', 'run') },
        { value, encoding, key: text('pass it to other systems as an idempotency key') },
      ),
    },
    async ({ steps }, { name: step, value: given, encoding: how }) => {
      if (given !== undefined)
        return { state: 'recorded', ...valued(await steps.record(step as string, payloadOf(given, how, 'value'))) }
      const begun = await steps.begin(step as string)
      return begun.state === 'run' ? { ...begun } : { state: begun.state, ...valued(begun.value) }
    },
  ),
  stepRoute(
    {
      path: 'sleep',
      name: 'sleepTask',
      summary: 'Parks the task until the duration has passed, or says that it has: `parked` ends the run',
    },
    {
      required: { name, duration },
      answer: shape({ state: states('over', 'parked', 'cancelled') }, { until }),
    },
    async ({ steps }, { name: step, duration: length }) =>
      waited(await steps.sleep(step as string, length as Duration)),
  ),
  stepRoute(
    {
      path: 'wait-for',
      name: 'waitForSignal',
      summary: 'Takes a signal that was sent to the task, or parks the task until one comes: `parked` ends the run',
    },
    {
      required: { name },
      optional: { signal: text('its name; default: the name of the step'), timeout: duration },
      answer: shape(
        { state: states('taken', 'timed-out', 'refused', 'parked', 'cancelled') },
        {
          value,
          encoding,
          signal: shape({ id: text(), name: text(), at: { type: 'string', format: 'date-time' } }),
          error: text('why a handler with a schema has refused the signal'),
          until,
        },
      ),
    },
    async ({ steps }, { token: _, name: step, ...options }) => {
      const outcome = await steps.waitFor(step as string, options)
      if (outcome.state !== 'taken') return waited(outcome)
      const { value: given, signal, ...rest } = outcome
      return { ...rest, ...valued(given), signal: { ...signal, at: iso(signal.at) } }
    },
  ),
]
