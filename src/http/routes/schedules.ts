/** Recurring work. */
import type { Schedule, ScheduleChanges, ScheduleOptions } from '../../index.ts'
import { encoding, payloadOf } from '../payloads.ts'
import { wholeNumber } from '../queries.ts'
import type { Call, JsonRoute, Route } from '../route.ts'
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
} from '../schemas.ts'

const { at: _, expiresAt: __, ...scheduled } = taskOptions

const plan: Readonly<Record<string, Schema>> = {
  cron: text('five fields, six with seconds first, or @daily and its like'),
  every: duration,
  mode: { type: 'string', enum: ['fixed-rate', 'fixed-delay'] },
  timezone: text('of cron: an IANA name; UTC when left out'),
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
  run: async (call) => call.showing.schedule(await change(call, call.params['id']!)),
})

export const SCHEDULES: readonly Route[] = [
  {
    method: 'get',
    path: '/schedules',
    name: 'listSchedules',
    summary: 'Every schedule, by id',
    right: 'read',
    answer: shape({ schedules: listOf(ref('Schedule')) }),
    run: async ({ client, showing }) => ({
      schedules: (await client.schedules.list()).map((one) => showing.schedule(one)),
    }),
  },
  {
    method: 'post',
    path: '/schedules',
    name: 'createSchedule',
    summary: 'Fires for the first time at its first slot after now',
    right: 'operate',
    body: shape({ id: text(), type: text(), input: anything('of every task') }, { ...plan, paused: flag() }),
    status: 201,
    answer: ref('Schedule'),
    refuses: ['ALREADY_EXISTS', 'INVALID_DURATION', 'INVALID_TASK'],
    run: async ({ client, body, showing }) =>
      showing.schedule(await client.schedules.create(planOf<ScheduleOptions>(body))),
  },
  {
    method: 'get',
    path: '/schedules/{id}',
    name: 'getSchedule',
    summary: 'One schedule',
    right: 'read',
    answer: ref('Schedule'),
    refuses: ['SCHEDULE_NOT_FOUND'],
    run: async ({ client, params, showing }) => showing.schedule(await client.schedules.get(params['id']!)),
  },
  {
    method: 'patch',
    path: '/schedules/{id}',
    name: 'updateSchedule',
    summary: 'What is left out stays as it is; what is due by the old plan still fires by the old plan',
    right: 'operate',
    body: shape({}, { ...plan, type: text(), input: anything('of every task') }),
    answer: ref('Schedule'),
    refuses: ['SCHEDULE_NOT_FOUND', 'SCHEDULE_MOVED', 'INVALID_DURATION'],
    run: async ({ client, params, body, showing }) =>
      showing.schedule(await client.schedules.update(params['id']!, planOf<ScheduleChanges>(body))),
  },
  {
    method: 'delete',
    path: '/schedules/{id}',
    name: 'deleteSchedule',
    summary: 'It fires no more; the tasks that it made stay',
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
    query: { count: whole('at most 100; 5 when left out') },
    answer: shape({ slots: listOf(instant) }),
    refuses: ['SCHEDULE_NOT_FOUND'],
    run: async ({ client, params, query: { count = '5' } }) => {
      const slots = await client.schedules.next(params['id']!, Math.min(wholeNumber(count, 'count'), 100))
      return { slots: slots.map((at) => new Date(at).toISOString()) }
    },
  },
  changing('pause', 'No slot fires until it is resumed', ({ client }, id) => client.schedules.pause(id)),
  changing('resume', 'Fires again, from its next slot on', ({ client }, id) => client.schedules.resume(id)),
  {
    method: 'post',
    path: '/schedules/{id}/trigger',
    name: 'triggerSchedule',
    summary: 'Makes one task now',
    right: 'operate',
    body: shape({}),
    status: 201,
    answer: ref('Task'),
    refuses: ['SCHEDULE_NOT_FOUND', 'SCHEDULE_MOVED'],
    run: async ({ client, params, showing }) => showing.task(await client.schedules.trigger(params['id']!)),
  },
]
