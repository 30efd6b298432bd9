/** One viewer's stream of server-sent events, from the feed that all viewers share. */

import type { Call } from '../route.ts'
import { HttpError } from '../wire/errors.ts'
import { shownStats } from '../wire/queue-stats.ts'
import type { Redaction } from '../wire/redaction.ts'
import type { FeedEvent } from './feed.ts'
import type { Tick } from './ticker.ts'

/** A viewer that does not read is disconnected; its browser reconnects. */
const MOST_WAITING = 1_024 * 1_024
/** A periodic comment line detects disconnected viewers and keeps proxies from closing the stream. */
const STILL_HERE = 15_000
const MOST_VIEWERS = 100
/** Of one caller: a session, a token, a user of the proxy. One cannot lock the others out. */
const MOST_OF_ONE = 20

const encoder = new TextEncoder()
const message = (name: string, data: unknown): Uint8Array =>
  encoder.encode(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`)

const shownTick = ({ at, ...tick }: Tick): Record<string, unknown> => ({
  at: new Date(at).toISOString(),
  ...tick,
})

/** Events that are the same for all viewers are encoded once. */
const written = new WeakMap<FeedEvent, WeakMap<Redaction, Uint8Array>>()

const writtenOnce = (event: FeedEvent, redaction: Redaction, write: () => Uint8Array): Uint8Array => {
  const known = written.get(event) ?? new WeakMap<Redaction, Uint8Array>()
  written.set(event, known)
  const bytes = known.get(redaction) ?? write()
  known.set(redaction, bytes)
  return bytes
}

export const streamOf = ({ feed, redaction, query, signal, access }: Call): ReadableStream<Uint8Array> => {
  const viewer = access.session?.id ?? access.name ?? null
  if (feed.viewers >= MOST_VIEWERS) throw new HttpError('TOO_MANY_VIEWERS')
  if (viewer !== null && feed.viewersOf(viewer) >= MOST_OF_ONE)
    throw new HttpError('TOO_MANY_VIEWERS', `this caller has ${MOST_OF_ONE} streams open already`)
  const { queue, type, task } = query
  const isAlike = ({ name }: FeedEvent): boolean =>
    name !== 'changes' || (queue === undefined && type === undefined && task === undefined)
  const seen = (event: FeedEvent): Record<string, unknown> | null => {
    if (event.name === 'tick') return shownTick(event.tick)
    if (event.name === 'stats') return { queues: shownStats(event.queues) }
    const { skipped } = event
    const changes = event.changes.filter(
      ({ task: changed }) =>
        (queue === undefined || changed.queue === queue) &&
        (type === undefined || changed.type === type) &&
        (task === undefined || changed.id === task),
    )
    if (changes.length === 0 && skipped === 0) return null
    return { changes: changes.map((one) => redaction.change(one)), skipped }
  }
  let leave = (): void => {}
  const endings = access.session === undefined ? [feed.closing] : [feed.closing, access.session.ended]
  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        const end = (): void => {
          leave()
          controller.close()
        }
        const send = (bytes: Uint8Array): void => {
          if ((controller.desiredSize ?? 0) > -MOST_WAITING) controller.enqueue(bytes)
          else end()
        }
        const view = (event: FeedEvent): void => {
          const data = isAlike(event) ? null : seen(event)
          if (isAlike(event)) send(writtenOnce(event, redaction, () => message(event.name, seen(event))))
          else if (data !== null) send(message(event.name, data))
        }
        const beat = setInterval(() => send(encoder.encode(': still here\n\n')), STILL_HERE).unref()
        const unwatch = feed.watch(view, viewer)
        leave = () => {
          clearInterval(beat)
          unwatch()
          for (const ending of endings) ending.removeEventListener('abort', end)
        }
        signal.addEventListener('abort', () => leave(), { once: true })
        for (const ending of endings) ending.addEventListener('abort', end)
        send(encoder.encode('retry: 2000\n\n'))
        send(message('past', { ticks: feed.past.map(shownTick) }))
      },
      cancel: () => leave(),
    },
    { highWaterMark: 0, size: (bytes) => bytes?.byteLength ?? 0 },
  )
}
