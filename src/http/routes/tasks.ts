/** Reads tasks, one or many. moves.ts changes them. */
import { HoldfastError } from '../../index.ts'
import type { Route } from '../route.ts'
import { FIELDS, listOptions, MAX_SCANNED, PAGE_QUERY, TASK_QUERY, taskQuery, wholeNumber } from '../wire/queries.ts'
import { flag, instant, listOf, ref, shape, text, whole } from '../wire/schemas.ts'
import { search, wantedBy } from '../wire/search.ts'

const CAP = 10_000
/** A search is not counted. */
const { text: _, error: __, ...COUNTABLE } = TASK_QUERY

export const TASKS: readonly Route[] = [
  {
    method: 'get',
    path: '/tasks',
    name: 'listTasks',
    summary:
      'Matching tasks, newest first, by page, without their histories. A page scans at most 50,000 tasks: it may be short or empty and still have a cursor',
    right: 'read',
    query: { ...TASK_QUERY, ...PAGE_QUERY, fields: FIELDS },
    answer: shape({
      tasks: listOf(ref('Task')),
      cursor: { type: ['string', 'null'], description: 'null on the last page' },
    }),
    run: async ({ client, query: { text: words, error, fields = 'summary', ...query }, redaction, rights }) => {
      if (fields !== 'summary' && fields !== 'all')
        throw new HoldfastError('INVALID_OPTION', 'fields must be summary or all', { field: 'fields' })
      const options = listOptions(query)
      const wanted = wantedBy({ text: words, error }, redaction)
      const isSearch = Object.keys(wanted).length > 0
      const { tasks, cursor } = isSearch
        ? await search(client, options, wanted, rights.has('payloads'))
        : await client.list(options)
      return { tasks: await (fields === 'all' ? redaction.tasks(tasks) : redaction.summaries(tasks)), cursor }
    },
  },
  {
    method: 'get',
    path: '/tasks/count',
    name: 'countTasks',
    summary: 'The number of matching tasks, up to a cap, and among the newest 50,000 where no index helps',
    right: 'read',
    query: { ...COUNTABLE, cap: whole('at most 100,000; default 10,000') },
    answer: shape({ count: whole(), capped: flag('the count is a lower bound') }),
    run: async ({ client, query: { cap, ...query } }) => {
      const counted = cap === undefined ? CAP : Math.min(wholeNumber(cap, 'cap'), 100_000)
      return client.count(taskQuery(query), { cap: counted, maxScanned: MAX_SCANNED })
    },
  },
  {
    method: 'get',
    path: '/tasks/by-key',
    name: 'getTaskByKey',
    summary: 'The task of an idempotency key',
    right: 'read',
    query: { key: text() },
    answer: ref('Task'),
    refuses: ['TASK_NOT_FOUND'],
    run: async ({ client, query, redaction }) => redaction.task(await client.getByIdempotencyKey(query['key'] ?? '')),
  },
  {
    method: 'get',
    path: '/tasks/{id}',
    name: 'getTask',
    summary: 'Everything about one task, with its history, its steps, and the signals that wait for it',
    right: 'read',
    answer: ref('Task'),
    refuses: ['TASK_NOT_FOUND'],
    run: async ({ client, params, redaction }) => redaction.task(await client.get(params['id']!)),
  },
  {
    method: 'get',
    path: '/tasks/{id}/history',
    name: 'taskHistory',
    summary:
      'Every move of one task, and as `timeline` the same merged by time with its steps and signals, without their values',
    right: 'read',
    answer: shape({
      history: listOf(ref('HistoryEntry')),
      timeline: listOf({ anyOf: [ref('HistoryEntry'), ref('StepMoment')] }),
    }),
    refuses: ['TASK_NOT_FOUND'],
    run: async ({ client, params, redaction }) => {
      const task = await client.get(params['id']!)
      return { history: (await redaction.task(task))['history'], timeline: redaction.timeline(task) }
    },
  },
  {
    method: 'get',
    path: '/tasks/{id}/why',
    name: 'whyTask',
    summary: 'Why the task is not running, or that it is: a sentence and the facts behind it',
    right: 'read',
    answer: shape({
      reason: text(),
      sentence: {
        type: ['string', 'null'],
        description: 'null without the right to see payloads, because it may quote an error',
      },
      now: instant,
      queuePaused: flag(),
      queueReady: shape({ count: whole(), capped: flag() }),
      queueRunning: shape({ count: whole(), capped: flag() }),
      workers: listOf(text('ids of workers that could run it')),
    }),
    refuses: ['TASK_NOT_FOUND'],
    run: async ({ client, params, rights }) => {
      const why = await client.why(params['id']!)
      const { reason, sentence, now, queuePaused, queueReady, queueRunning, workers } = why
      return {
        reason,
        queuePaused,
        queueReady,
        queueRunning,
        sentence: rights.has('payloads') ? sentence : null,
        now: new Date(now).toISOString(),
        workers: workers.map(({ id }) => id),
      }
    },
  },
]
