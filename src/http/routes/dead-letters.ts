/** The dead letters: by what they died of, and back to life. What is about many is previewed first, and done in the background. */
import type { DeadQuery, Duration, EachResult, HoldfastError, ReplayOptions } from '../../index.ts'
import type { Deed } from '../deeds.ts'
import { errorOf } from '../errors.ts'
import { TASK_QUERY, taskQuery, wholeNumber } from '../queries.ts'
import type { Call, JsonRoute, Route } from '../route.ts'
import { anything, duration, flag, listOf, ref, type Schema, shape, text, whole } from '../schemas.ts'

const { status: _, workerId: __, ...deadQuery } = TASK_QUERY

const which: Readonly<Record<string, Schema>> = {
  ids: listOf(text(), 1_000),
  query: shape(
    {},
    {
      group: text('a fingerprint'),
      queue: text(),
      type: text(),
      tag: shape({ name: text(), value: text() }),
      createdAfter: text(),
      createdBefore: text(),
      completedBefore: text(),
    },
  ),
}

const deed = shape({
  id: text(),
  name: text(),
  state: { type: 'string', enum: ['running', 'done', 'failed'] },
  done: whole('tasks so far'),
  report: anything('how it went, once it is done'),
  error: anything('why it failed'),
})
const preview = shape({ matched: whole(), capped: flag(), sample: listOf(ref('Task')), confirm: text() })

/** Too many to tell one by one. */
const MOST_REFUSED = 100
/** Newest first. */
const SCANNED = 2_000
/** A preview counts no further. */
const PREVIEWED = 5_000

const chosen = ({ ids, query }: Call['body']): readonly string[] | DeadQuery =>
  (ids as readonly string[] | undefined) ?? (query as DeadQuery | undefined) ?? []

const refusedOf = (results: readonly (EachResult | { readonly id: string; readonly error?: HoldfastError })[]) =>
  results.flatMap((one) => ('error' in one && one.error ? [{ id: one.id, error: errorOf(one.error) }] : []))

/** A query must have been looked at before; ids have been. */
const demand = ({ confirmations, body }: Call, name: string): void => {
  if (body['ids'] === undefined) confirmations.demand(name, body['query'] ?? null, body['confirm'])
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
    const { client, body, showing, confirmations } = call
    const { matched, capped, sample } = await client.deadLetters[name](chosen(body), { dryRun: true, cap: PREVIEWED })
    return {
      matched,
      capped,
      sample: await showing.tasks(sample),
      confirm: confirmations.give(name, body['query'] ?? null),
    }
  },
})

const replay = (call: Call): Deed => {
  demand(call, 'replay')
  const { client, deeds, body } = call
  const { ids: _ids, query: _query, confirm: _confirm, ...options } = body
  return deeds.begin('replay', async (onProgress, signal) => {
    const report = await client.deadLetters.replay(chosen(body), { ...(options as ReplayOptions), onProgress, signal })
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

const purge = (call: Call): Deed => {
  demand(call, 'purge')
  const { client, deeds, body } = call
  return deeds.begin('purge', async (onProgress, signal) => {
    const { matched, capped, stopped, results } = await client.deadLetters.purge(chosen(body), { onProgress, signal })
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

const confirm = text('of the preview; needed with `query`, not with `ids`')

export const DEAD_LETTERS: readonly Route[] = [
  {
    method: 'get',
    path: '/dead-letters/groups',
    name: 'deadGroups',
    summary: 'What tasks died of, largest group first',
    right: 'read',
    query: { ...deadQuery, cap: whole('look at so many of the newest at the most; 2,000 when left out') },
    answer: shape({ groups: listOf(ref('DeadGroup')), scanned: whole(), capped: flag('the counts are too low') }),
    run: async ({ client, query: { cap, ...query }, showing }) => {
      const most = cap === undefined ? SCANNED : Math.min(wholeNumber(cap, 'cap'), 100_000)
      const { groups, scanned, capped } = await client.deadLetters.groups(taskQuery(query), { cap: most })
      return { groups: await Promise.all(groups.map((group) => showing.group(group))), scanned, capped }
    },
  },
  previewing('replay', 'What a replay would be about; gives the `confirm` that it needs'),
  {
    method: 'post',
    path: '/dead-letters/replay',
    name: 'replayDeadLetters',
    summary: 'Run dead letters again: these ids, a group, or all that match; a canary first, when asked',
    right: 'operate',
    body: shape(
      {},
      {
        ...which,
        confirm,
        canary: whole('so many first; unless all of them complete, the others are left alone'),
        canaryTimeout: duration,
        rate: whole('at the most so many a second'),
        asNew: flag(),
        ttl: duration as Schema & { readonly default?: Duration },
      },
    ),
    status: 202,
    answer: deed,
    refuses: ['NOT_CONFIRMED'],
    run: async (call) => replay(call),
  },
  previewing('purge', 'What a purge would be about; gives the `confirm` that it needs'),
  {
    method: 'post',
    path: '/dead-letters/purge',
    name: 'purgeDeadLetters',
    summary: 'Dead letters and their idempotency keys are gone for good',
    right: 'operate',
    body: shape({}, { ...which, confirm }),
    status: 202,
    answer: deed,
    refuses: ['NOT_CONFIRMED'],
    run: async (call) => purge(call),
  },
  {
    method: 'get',
    path: '/deeds/{id}',
    name: 'getDeed',
    summary: 'How far a replay or purge has come. Known to the server that it was given to, until it restarts',
    right: 'read',
    answer: deed,
    refuses: ['TASK_NOT_FOUND'],
    run: async ({ deeds, params }) => deeds.get(params['id']!),
  },
  {
    method: 'post',
    path: '/deeds/{id}/stop',
    name: 'stopDeed',
    summary: 'Stops it between two batches; what is done stays done',
    right: 'operate',
    body: shape({}),
    answer: deed,
    refuses: ['TASK_NOT_FOUND'],
    run: async ({ deeds, params }) => deeds.stop(params['id']!),
  },
]
