/** Reads tasks, one or many. moves.ts changes them. */

import type { Route } from '../route.ts'
import { listOptions, MAX_SCANNED, PAGE_QUERY, TASK_QUERY, taskQuery, wholeNumber } from '../wire/queries.ts'
import { flag, instant, listOf, ref, shape, text, whole } from '../wire/schemas.ts'

const CAP = 10_000

export const TASKS: readonly Route[] = [
  {
    method: 'get',
    path: '/tasks',
    name: 'listTasks',
    summary:
      'Matching tasks, newest first, by page, without their histories. A page scans at most 50,000 tasks: it may be short or empty and still have a cursor',
    right: 'read',
    query: { ...TASK_QUERY, ...PAGE_QUERY },
    answer: shape({
      tasks: listOf(ref('Task')),
      cursor: { type: ['string', 'null'], description: 'null on the last page' },
    }),
    run: async ({ client, query, redaction }) => {
      const { tasks, cursor } = await client.list(listOptions(query))
      return { tasks: await redaction.tasks(tasks), cursor }
    },
  },
  {
    method: 'get',
    path: '/tasks/count',
    name: 'countTasks',
    summary: 'The number of matching tasks, up to a cap, and among the newest 50,000 where no index helps',
    right: 'read',
    query: { ...TASK_QUERY, cap: whole('at most 100,000; default 10,000') },
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
    summary: 'Everything about one task, with its history',
    right: 'read',
    answer: ref('Task'),
    refuses: ['TASK_NOT_FOUND'],
    run: async ({ client, params, redaction }) => redaction.task(await client.get(params['id']!)),
  },
  {
    method: 'get',
    path: '/tasks/{id}/history',
    name: 'taskHistory',
    summary: 'Every move of one task',
    right: 'read',
    answer: shape({ history: listOf(ref('HistoryEntry')) }),
    refuses: ['TASK_NOT_FOUND'],
    run: async ({ client, params, redaction }) => ({
      history: (await redaction.task(await client.get(params['id']!)))['history'],
    }),
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
