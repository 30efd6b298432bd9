/** One action on many tasks: those that were chosen, or all that match. It runs as a background job. */
import type { Client, ListOptions, TaskQuery } from '../../index.ts'
import type { BackgroundJob } from '../background-jobs.ts'
import type { Call, Route } from '../route.ts'
import { errorOf } from '../wire/errors.ts'
import { listOptions, MAX_SCANNED, TASK_QUERY, taskQuery } from '../wire/queries.ts'
import { flag, listOf, ref, shape, text } from '../wire/schemas.ts'
import { search, wantedBy } from '../wire/search.ts'
import { job } from './dead-letters.ts'

type Act = (client: Client, id: string) => Promise<unknown>

const ACTIONS = {
  retry: (client, id) => client.retry(id),
  cancel: (client, id) => client.cancel(id),
  archive: (client, id) => client.archive(id),
  unarchive: (client, id) => client.unarchive(id),
  delete: (client, id) => client.delete(id),
  replay: async (client, id) => {
    const { results } = await client.deadLetters.replay(id)
    const [result] = results
    if (result !== undefined && 'error' in result && result.error) throw result.error
  },
} as const satisfies Record<string, Act>

const SIDE_BY_SIDE = 20
const PAGE = 200
const MOST_IDS = 1_000
const MOST_REFUSED = 100
const PREVIEWED = 5_000
const COUNTED = 100_000

const query = { ...shape({}, TASK_QUERY), description: 'as the parameters of `GET /tasks`' }
const action = { type: 'string', enum: Object.keys(ACTIONS) } as const

type Given = Readonly<Record<string, string>>

/** A search has no index: it is not counted. */
const bare = ({ text: _, error: __, ...rest }: Given): TaskQuery => taskQuery(rest)
const isSearch = ({ text: words, error }: Given): boolean => words !== undefined || error !== undefined

const pagesOf = async function* (call: Call, given: Given): AsyncGenerator<readonly string[]> {
  const mayReadErrors = call.rights.has('payloads')
  const { text: words, error, ...rest } = given
  const wanted = wantedBy({ text: words, error }, call.redaction)
  let cursor: string | null | undefined
  do {
    const options: ListOptions & { limit: number } = {
      ...listOptions({ ...rest, limit: String(PAGE) }),
      limit: PAGE,
      ...(cursor && { cursor }),
    }
    const page = isSearch(given)
      ? await search(call.client, options, wanted, mayReadErrors)
      : await call.client.list(options)
    yield page.tasks.map(({ id }) => id)
    ;({ cursor } = page)
  } while (cursor !== null)
}

const begin = (call: Call): Promise<BackgroundJob> => {
  const { client, body, jobs, confirmations, access } = call
  const name = body['action'] as keyof typeof ACTIONS
  const ids = body['ids'] as readonly string[] | undefined
  const given = (body['query'] ?? {}) as Given
  if (ids === undefined) confirmations.demand(`bulk ${name}`, given, body['confirm'], '/tasks/bulk/preview')
  const total = async (): Promise<number | null> =>
    ids?.length ?? (isSearch(given) ? null : (await client.count(bare(given), { cap: COUNTED })).count)
  return jobs.begin(name, { by: access.name ?? null, total }, async (onProgress, signal) => {
    const refused: object[] = []
    let matched = 0
    let done = 0
    const one = async (id: string): Promise<void> => {
      try {
        await ACTIONS[name](client, id)
        done++
      } catch (error) {
        refused.push({ id, error: errorOf(error) })
      }
    }
    const pages = ids === undefined ? pagesOf(call, given) : [ids]
    for await (const page of pages) {
      for (let from = 0; from < page.length && !signal.aborted; from += SIDE_BY_SIDE) {
        const some = page.slice(from, from + SIDE_BY_SIDE)
        matched += some.length
        await Promise.all(some.map(one))
        onProgress(matched)
      }
      if (signal.aborted) break
    }
    return {
      matched,
      changed: done,
      stopped: signal.aborted ? 'aborted' : null,
      refused: refused.slice(0, MOST_REFUSED),
      refusedCount: refused.length,
    }
  })
}

export const BULK: readonly Route[] = [
  {
    method: 'post',
    path: '/tasks/bulk/preview',
    name: 'bulkPreview',
    summary: 'What an action on all matching tasks would affect; returns the `confirm` that it requires',
    right: 'read',
    harmless: true,
    body: shape({ action, query }),
    answer: shape({
      matched: { type: ['integer', 'null'], description: 'null for a search, which is not counted' },
      capped: flag(),
      sample: listOf(ref('Task')),
      confirm: text(),
    }),
    run: async ({ client, body, confirmations, redaction, rights }) => {
      const given = body['query'] as Given
      const { text: words, error } = given
      const options = { ...bare(given), limit: 4, maxScanned: MAX_SCANNED }
      const [counted, { tasks }] = await Promise.all([
        isSearch(given) ? null : client.count(bare(given), { cap: PREVIEWED, maxScanned: MAX_SCANNED }),
        isSearch(given)
          ? search(client, options, wantedBy({ text: words, error }, redaction), rights.has('payloads'))
          : client.list(options),
      ])
      return {
        matched: counted?.count ?? null,
        capped: counted?.capped ?? true,
        sample: await redaction.summaries(tasks),
        confirm: confirmations.give(`bulk ${body['action'] as string}`, given),
      }
    },
  },
  {
    method: 'post',
    path: '/tasks/bulk',
    name: 'bulk',
    summary:
      'One action on many tasks, by ids or by a query. Each task has its own result; those that refuse are named',
    right: 'operate',
    body: shape(
      { action },
      {
        ids: listOf(text(), MOST_IDS),
        query,
        confirm: text('from the preview; required with `query`, not with `ids`'),
      },
    ),
    status: 202,
    answer: job,
    refuses: ['NOT_CONFIRMED'],
    run: async (call) => begin(call),
  },
]
