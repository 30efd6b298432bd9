/** Browsers that have logged in with a token. login.ts begins and ends a caller's own session. */
import type { Route } from '../route.ts'
import { HttpError } from '../wire/errors.ts'
import { flag, instant, listOf, type Schema, shape, text } from '../wire/schemas.ts'

const session: Schema = shape({
  id: text('names the session, and opens nothing'),
  name: { type: ['string', 'null'], description: 'of the token' },
  startedAt: instant,
  seenAt: { ...instant, description: 'of its last request' },
  isOwn: flag('the session of this caller'),
})

export const SESSIONS: readonly Route[] = [
  {
    method: 'get',
    path: '/sessions',
    name: 'listSessions',
    summary: 'The browsers that are logged in to this server with a token, the latest first',
    right: 'operate',
    answer: shape({ sessions: listOf(session) }),
    run: async ({ sessions, access }) => ({
      sessions: (sessions?.list() ?? []).map(({ id, owner, startedAt, seenAt }) => ({
        id,
        name: owner.name ?? null,
        startedAt: new Date(startedAt).toISOString(),
        seenAt: new Date(seenAt).toISOString(),
        isOwn: id === access.session?.id,
      })),
    }),
  },
  {
    method: 'delete',
    path: '/sessions/{id}',
    name: 'endSession',
    summary: 'Logs a browser out, and ends its streams at once',
    right: 'operate',
    answer: null,
    refuses: ['SESSION_NOT_FOUND'],
    run: async ({ sessions, params }) => {
      if (!sessions?.end(params['id']!)) throw new HttpError('SESSION_NOT_FOUND')
    },
  },
]
