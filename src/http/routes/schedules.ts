/** Recurring work. */
import type { Schedule, ScheduleChanges, ScheduleOptions } from '../../index.ts'
import type { Call, JsonRoute, Route } from '../route.ts'
import { encoding, payloadOf } from '../wire/payloads.ts'
import { wholeNumber } from '../wire/queries.ts'
import {
  anything,
  duration,
  flag,
  instant,
  listOf,
  ref,
  type Schema,
  shape,
  taskOptions,
  text,
  whole,
} from '../wire/schemas.ts'

const { at: _, expiresAt: __, ...scheduled } = taskOptions

const plan: Readonly<Record<string, Schema>> = {
  cron: text('five fields, six with seconds first, or @daily and similar'),
  every: duration,
  mode: { type: 'string', enum: ['fixed-rate', 'fixed-delay'] },
  timezone: text('for cron: an IANA name; default UTC'),
  overlap: { type: 'string', enum: ['skip', 'allow'] },
  catchUp: { type: 'string', enum: ['skip', 'last', 'all'] },
  options: shape({}, scheduled),
  encoding,
}

type Given<T> = T & { readonly encoding?: string }

const planOf = <T extends { readonly input?: unknown }>(body: unknown): T => {
  const { encoding: how, ...rest } = body as Given<T>
  return ('input' in rest ? { ...rest, input: payloadOf(rest.input, how, 'input') } : rest) as T
}

type Change = (call: Call, id: string) => Promise<Schedule>

const changing = (name: string, summary: string, change: Change): JsonRoute => ({
  method: 'post',
  path: `/schedules/{id}/${name}`,
  name: `${name}Schedule`,
  summary,
  right: 'operate',
  body: shape({}),
  answer: ref('Schedule'),
  refuses: ['SCHEDULE_NOT_FOUND', 'SCHEDULE_MOVED'],
  run: async (call) => call.redaction.schedule(await change(call, call.params['id']!)),
})

export const SCHEDULES: readonly Route[] = [
  {
    method: 'get',
    path: '/schedules',
    name: 'listSchedules',
    summary: 'All schedules, by id',
    right: 'read',
    answer: shape({ schedules: listOf(ref('Schedule')) }),
    run: async ({ client, redaction }) => ({
      schedules: (await client.schedules.list()).map((one) => redaction.schedule(one)),
    }),
  },
  {
    method: 'post',
    path: '/schedules',
    name: 'createSchedule',
    summary: 'Creates a schedule. It does not fire before its first slot',
    right: 'operate',
    body: shape({ id: text(), type: text(), input: anything('the input of every task') }, { ...plan, paused: flag() }),
    status: 201,
    answer: ref('Schedule'),
    refuses: ['ALREADY_EXISTS', 'INVALID_DURATION', 'INVALID_TASK'],
    run: async ({ client, body, redaction }) =>
      redaction.schedule(await client.schedules.create(planOf<ScheduleOptions>(body))),
  },
  {
    method: 'get',
    path: '/schedules/{id}',
    name: 'getSchedule',
    summary: 'One schedule',
    right: 'read',
    answer: ref('Schedule'),
    refuses: ['SCHEDULE_NOT_FOUND'],
    run: async ({ client, params, redaction }) => redaction.schedule(await client.schedules.get(params['id']!)),
  },
  {
    method: 'patch',
    path: '/schedules/{id}',
    name: 'updateSchedule',
    summary: 'Changes a schedule. Omitted fields stay as they are; slots that are already due fire under the old plan',
    right: 'operate',
    body: shape({}, { ...plan, type: text(), input: anything('the input of every task') }),
    answer: ref('Schedule'),
    refuses: ['SCHEDULE_NOT_FOUND', 'SCHEDULE_MOVED', 'INVALID_DURATION'],
    run: async ({ client, params, body, redaction }) =>
      redaction.schedule(await client.schedules.update(params['id']!, planOf<ScheduleChanges>(body))),
  },
  {
    method: 'delete',
    path: '/schedules/{id}',
    name: 'deleteSchedule',
    summary: 'Deletes a schedule; its tasks stay',
    right: 'operate',
    answer: null,
    refuses: ['SCHEDULE_NOT_FOUND'],
    run: ({ client, params }) => client.schedules.delete(params['id']!),
  },
  {
    method: 'get',
    path: '/schedules/{id}/next',
    name: 'nextOfSchedule',
    summary: 'Its next slots',
    right: 'read',
    query: { count: whole('at most 100; default 5') },
    answer: shape({ slots: listOf(instant) }),
    refuses: ['SCHEDULE_NOT_FOUND'],
    run: async ({ client, params, query: { count = '5' } }) => {
      const slots = await client.schedules.next(params['id']!, Math.min(wholeNumber(count, 'count'), 100))
      return { slots: slots.map((at) => new Date(at).toISOString()) }
    },
  },
  changing('pause', 'Pauses a schedule: no slot fires until it is resumed', ({ client }, id) =>
    client.schedules.pause(id),
  ),
  changing('resume', 'Resumes a schedule from its next slot on', ({ client }, id) => client.schedules.resume(id)),
  {
    method: 'post',
    path: '/schedules/{id}/trigger',
    name: 'triggerSchedule',
    summary: 'Creates one task now',
    right: 'operate',
    body: shape({}),
    status: 201,
    answer: ref('Task'),
    refuses: ['SCHEDULE_NOT_FOUND', 'SCHEDULE_MOVED'],
    run: async ({ client, params, redaction }) => redaction.task(await client.schedules.trigger(params['id']!)),
  },
]
