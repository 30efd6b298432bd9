/** Tasks, one and many: look at them. What moves them is in moves.ts. */
import { listOptions, MOST_PASSED, PAGE_QUERY, TASK_QUERY, taskQuery, wholeNumber } from '../queries.ts'
import type { Route } from '../route.ts'
import { flag, instant, listOf, ref, shape, text, whole } from '../schemas.ts'

const CAP = 10_000

export const TASKS: readonly Route[] = [
  {
    method: 'get',
    path: '/tasks',
    name: 'listTasks',
    summary:
      'Tasks that match, newest first, a page at a time; without their histories. A page ends after a look at 50,000 tasks: it may be short, or empty, and have a cursor',
    right: 'read',
    query: { ...TASK_QUERY, ...PAGE_QUERY },
    answer: shape({
      tasks: listOf(ref('Task')),
      cursor: { type: ['string', 'null'], description: 'null: the last page' },
    }),
    run: async ({ client, query, showing }) => {
      const { tasks, cursor } = await client.list(listOptions(query))
      return { tasks: await showing.tasks(tasks), cursor }
    },
  },
  {
    method: 'get',
    path: '/tasks/count',
    name: 'countTasks',
    summary: 'How many match, counted up to a cap, and among the newest 50,000 where no index helps',
    right: 'read',
    query: { ...TASK_QUERY, cap: whole('at most 100,000; 10,000 when left out') },
    answer: shape({ count: whole(), capped: flag('there may be more') }),
    run: async ({ client, query: { cap, ...query } }) => {
      const most = cap === undefined ? CAP : Math.min(wholeNumber(cap, 'cap'), 100_000)
      return client.count(taskQuery(query), { cap: most, most: MOST_PASSED })
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
    run: async ({ client, query, showing }) => showing.task(await client.getByIdempotencyKey(query['key'] ?? '')),
  },
  {
    method: 'get',
    path: '/tasks/{id}',
    name: 'getTask',
    summary: 'Everything about one task, with its history',
    right: 'read',
    answer: ref('Task'),
    refuses: ['TASK_NOT_FOUND'],
    run: async ({ client, params, showing }) => showing.task(await client.get(params['id']!)),
  },
  {
    method: 'get',
    path: '/tasks/{id}/history',
    name: 'taskHistory',
    summary: 'Every move of one task',
    right: 'read',
    answer: shape({ history: listOf(ref('HistoryEntry')) }),
    refuses: ['TASK_NOT_FOUND'],
    run: async ({ client, params, showing }) => ({
      history: (await showing.task(await client.get(params['id']!)))['history'],
    }),
  },
  {
    method: 'get',
    path: '/tasks/{id}/why',
    name: 'whyTask',
    summary: 'Why it is not running, or that it is: a sentence, and the facts that it rests on',
    right: 'read',
    answer: shape({
      reason: text(),
      sentence: { type: ['string', 'null'], description: 'null for who may not see payloads: it may quote an error' },
      now: instant,
      queuePaused: flag(),
      queueReady: shape({ count: whole(), capped: flag() }),
      queueRunning: shape({ count: whole(), capped: flag() }),
      workers: listOf(text('ids of those that could take it')),
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
