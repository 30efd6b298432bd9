/** Exchanges a token for a cookie. */
import type { Hono } from 'hono'
import { API } from '../routes.ts'
import { answer } from '../wire/answers.ts'
import { readBody } from '../wire/body.ts'
import { HttpError } from '../wire/errors.ts'
import type { Tokens } from './access.ts'
import type { Origins } from './origin.ts'

export const addLogin = (
  app: Hono,
  { tokens, origins, basePath, maxBody }: { tokens: Tokens; origins: Origins; basePath: string; maxBody: number },
): void => {
  const isSecure = (request: Request): boolean => new URL(request.url).protocol === 'https:'
  app.get('/login', ({ req }) => {
    const cookie = tokens.login(req.query('token') ?? '', isSecure(req.raw))
    if (cookie === null) throw new HttpError('NOT_AUTHENTICATED')
    return answer(null, { status: 303, headers: { location: `${basePath}/`, 'set-cookie': cookie } })
  })
  app.post(`${API}/session`, async ({ req }) => {
    origins.checkSite(req.raw, false)
    const { token } = await readBody(req.raw, maxBody)
    const cookie = typeof token === 'string' ? tokens.login(token, isSecure(req.raw)) : null
    if (cookie === null) throw new HttpError('NOT_AUTHENTICATED')
    return answer(null, { status: 204, headers: { 'set-cookie': cookie } })
  })
  app.delete(`${API}/session`, ({ req }) => {
    origins.checkSite(req.raw, false)
    return answer(null, { status: 204, headers: { 'set-cookie': tokens.logout(isSecure(req.raw)) } })
  })
}
