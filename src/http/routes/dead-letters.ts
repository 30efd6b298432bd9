/** Dead letters: groups by error, replay and purge. Bulk actions require a preview and run as background jobs. */
import type { DeadQuery, Duration, EachResult, HoldfastError, ReplayOptions } from '../../index.ts'
import type { BackgroundJob } from '../background-jobs.ts'
import type { Call, JsonRoute, Route } from '../route.ts'
import { errorOf } from '../wire/errors.ts'
import { listOptions, PAGE_QUERY, TASK_QUERY, taskQuery, wholeNumber } from '../wire/queries.ts'
import type { Redaction } from '../wire/redaction.ts'
import { anything, duration, flag, instant, listOf, ref, type Schema, shape, text, whole } from '../wire/schemas.ts'
import { search, wantedBy } from '../wire/search.ts'

/** A group is an error here. */
const { status: _, workerId: __, text: ___, error: ____, group: taskGroup, ...filters } = TASK_QUERY
const deadQuery = { ...filters, group: text('only this error: a fingerprint'), taskGroup: taskGroup! }

const which: Readonly<Record<string, Schema>> = {
  ids: listOf(text(), 1_000),
  query: shape(
    {},
    {
      group: text('a fingerprint'),
      taskGroup: text('the group of the task'),
      queue: text(),
      type: text(),
      tag: shape({ name: text(), value: text() }),
      createdAfter: text(),
      createdBefore: text(),
      completedBefore: text(),
    },
  ),
}

export const job = shape({
  id: text(),
  name: text(),
  state: { type: 'string', enum: ['running', 'done', 'failed'] },
  startedAt: instant,
  endedAt: { type: ['string', 'null'], format: 'date-time' },
  by: { type: ['string', 'null'], description: 'who began it' },
  total: { type: ['integer', 'null'], description: 'how many tasks match' },
  canary: { type: ['integer', 'null'], description: 'how many run before the others' },
  done: whole('tasks processed so far'),
  report: anything('the result, once it is done'),
  error: anything('why it failed'),
})
const preview = shape({ matched: whole(), capped: flag(), sample: listOf(ref('Task')), confirm: text() })

/** The report lists no more refused tasks than this. */
const MOST_REFUSED = 100
/** Newest first. */
const SCANNED = 2_000
/** A preview counts up to this. */
const PREVIEWED = 5_000
/** The total of a job is counted up to this. */
const COUNTED = 100_000

const groupOf = ({ group, ...rest }: DeadQuery, redaction: Redaction): DeadQuery => ({
  ...rest,
  ...(group === undefined ? null : { group: redaction.fingerprintOf(group) }),
})

const chosen = ({ body: { ids, query }, redaction }: Pick<Call, 'body' | 'redaction'>): readonly string[] | DeadQuery =>
  (ids as readonly string[] | undefined) ?? (query === undefined ? [] : groupOf(query as DeadQuery, redaction))

const refusedOf = (results: readonly (EachResult | { readonly id: string; readonly error?: HoldfastError })[]) =>
  results.flatMap((one) => ('error' in one && one.error ? [{ id: one.id, error: errorOf(one.error) }] : []))

/** A query requires a preview; ids do not. */
const demand = ({ confirmations, body }: Call, name: string): void => {
  if (body['ids'] === undefined)
    confirmations.demand(name, body['query'] ?? null, body['confirm'], `/dead-letters/${name}/preview`)
}

const previewing = (name: 'replay' | 'purge', summary: string): JsonRoute => ({
  method: 'post',
  path: `/dead-letters/${name}/preview`,
  name: `${name}Preview`,
  summary,
  right: 'read',
  harmless: true,
  body: shape({}, which),
  answer: preview,
  run: async (call) => {
    const { client, body, redaction, confirmations } = call
    const { matched, capped, sample } = await client.deadLetters[name](chosen(call), { dryRun: true, cap: PREVIEWED })
    return {
      matched,
      capped,
      sample: await redaction.summaries(sample),
      confirm: confirmations.give(name, body['query'] ?? null),
    }
  },
})

const replay = (call: Call): Promise<BackgroundJob> => {
  demand(call, 'replay')
  const { client, jobs, body } = call
  const { ids: _ids, query: _query, confirm: _confirm, ...options } = body
  const total = async (): Promise<number> =>
    (await client.deadLetters.replay(chosen(call), { dryRun: true, cap: COUNTED })).matched
  const begun = {
    by: call.access.name ?? null,
    total,
    ...(typeof body['canary'] === 'number' && { canary: body['canary'] }),
  }
  return jobs.begin('replay', begun, async (onProgress, signal) => {
    const report = await client.deadLetters.replay(chosen(call), { ...(options as ReplayOptions), onProgress, signal })
    const { matched, capped, stopped, canary, results } = report
    const refused = refusedOf(results)
    return {
      matched,
      capped,
      stopped,
      canary,
      replayed: results.length - refused.length,
      refused: refused.slice(0, MOST_REFUSED),
    }
  })
}

const purge = (call: Call): Promise<BackgroundJob> => {
  demand(call, 'purge')
  const { client, jobs } = call
  const total = async (): Promise<number> =>
    (await client.deadLetters.purge(chosen(call), { dryRun: true, cap: COUNTED })).matched
  return jobs.begin('purge', { by: call.access.name ?? null, total }, async (onProgress, signal) => {
    const { matched, capped, stopped, results } = await client.deadLetters.purge(chosen(call), { onProgress, signal })
    const refused = refusedOf(results)
    return {
      matched,
      capped,
      stopped,
      purged: results.length - refused.length,
      refused: refused.slice(0, MOST_REFUSED),
    }
  })
}

const confirm = text('from the preview; required with `query`, not with `ids`')

export const DEAD_LETTERS: readonly Route[] = [
  {
    method: 'get',
    path: '/dead-letters',
    name: 'listDeadLetters',
    summary:
      'Dead letters, newest first, by page, without their payloads. With `group`, a page is searched for a short while: it may be short or empty and still have a cursor',
    right: 'read',
    query: { ...deadQuery, ...PAGE_QUERY },
    answer: shape({
      tasks: listOf(ref('Task')),
      cursor: { type: ['string', 'null'], description: 'null on the last page' },
    }),
    run: async ({ client, query: { group, taskGroup, ...query }, redaction, rights }) => {
      const options = listOptions({ ...query, status: 'dead', ...(taskGroup && { group: taskGroup }) })
      const { tasks, cursor } = group
        ? await search(client, options, wantedBy({ error: group }, redaction), rights.has('payloads'))
        : await client.list(options)
      return { tasks: await redaction.summaries(tasks), cursor }
    },
  },
  {
    method: 'get',
    path: '/dead-letters/groups',
    name: 'deadGroups',
    summary: 'Dead letters grouped by error, largest group first',
    right: 'read',
    query: { ...deadQuery, cap: whole('maximum number of dead letters to read, newest first; default 2,000') },
    answer: shape({ groups: listOf(ref('DeadGroup')), scanned: whole(), capped: flag('the counts are lower bounds') }),
    run: async ({ client, query: { cap, ...query }, redaction }) => {
      const most = cap === undefined ? SCANNED : Math.min(wholeNumber(cap, 'cap'), 100_000)
      const { groups, scanned, capped } = await client.deadLetters.groups(groupOf(taskQuery(query), redaction), {
        cap: most,
      })
      return { groups: await Promise.all(groups.map((group) => redaction.group(group))), scanned, capped }
    },
  },
  previewing('replay', 'What a replay would affect; returns the `confirm` that the replay requires'),
  {
    method: 'post',
    path: '/dead-letters/replay',
    name: 'replayDeadLetters',
    summary: 'Replays dead letters: by ids, a group, or all that match; optionally with a canary first',
    right: 'operate',
    body: shape(
      {},
      {
        ...which,
        confirm,
        canary: whole('replay this many first; unless all of them complete, the others are left alone'),
        canaryTimeout: duration,
        rate: whole('maximum number per second'),
        asNew: flag(),
        fresh: flag('forget the recorded steps and the signals'),
        ttl: duration as Schema & { readonly default?: Duration },
      },
    ),
    status: 202,
    answer: job,
    refuses: ['NOT_CONFIRMED'],
    run: async (call) => replay(call),
  },
  previewing('purge', 'What a purge would affect; returns the `confirm` that the purge requires'),
  {
    method: 'post',
    path: '/dead-letters/purge',
    name: 'purgeDeadLetters',
    summary: 'Permanently removes dead letters and their idempotency keys',
    right: 'operate',
    body: shape({}, { ...which, confirm }),
    status: 202,
    answer: job,
    refuses: ['NOT_CONFIRMED'],
    run: async (call) => purge(call),
  },
  {
    method: 'get',
    path: '/jobs',
    name: 'listJobs',
    summary:
      'The background jobs of this server, newest first: those that run, and the last hundred that ended, with their results',
    right: 'read',
    answer: shape({ jobs: listOf(job) }),
    run: async ({ jobs }) => ({ jobs: jobs.list() }),
  },
  {
    method: 'get',
    path: '/jobs/{id}',
    name: 'getJob',
    summary:
      'The progress of a background job (a replay or purge). Only the server that started it knows it, until it restarts',
    right: 'read',
    answer: job,
    refuses: ['TASK_NOT_FOUND'],
    run: async ({ jobs, params }) => jobs.get(params['id']!),
  },
  {
    method: 'post',
    path: '/jobs/{id}/stop',
    name: 'stopJob',
    summary: 'Stops a background job between two batches; what is done stays done',
    right: 'operate',
    body: shape({}),
    answer: job,
    refuses: ['TASK_NOT_FOUND'],
    run: async ({ jobs, params }) => jobs.stop(params['id']!),
  },
]
