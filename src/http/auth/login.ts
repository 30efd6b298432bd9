/** Exchanges a token for a session. */
import type { Hono } from 'hono'
import { API } from '../route.ts'
import { answer } from '../wire/answers.ts'
import { readBody } from '../wire/body.ts'
import { HttpError } from '../wire/errors.ts'
import type { Origins } from './origin.ts'
import type { Tokens } from './tokens.ts'

interface LoginOptions {
  readonly tokens: Tokens
  readonly origins: Origins
  readonly basePath: string
  readonly maxBody: number
  /** The dashboard is served here, so it can explain a link whose token is out of date. */
  readonly hasPages: boolean
}

export const addLogin = (app: Hono, { tokens, origins, basePath, maxBody, hasPages }: LoginOptions): void => {
  app.get('/login', ({ req }) => {
    const cookie = tokens.login(req.query('token') ?? '', origins.isSecure(req.raw))
    if (cookie !== null)
      return answer(null, { status: 303, headers: { location: `${basePath}/`, 'set-cookie': cookie } })
    if (!hasPages || !(req.header('accept') ?? '').includes('text/html')) throw new HttpError('NOT_AUTHENTICATED')
    return answer(null, { status: 303, headers: { location: `${basePath}/#/login` } })
  })
  app.post(`${API}/session`, async ({ req }) => {
    origins.checkSite(req.raw, false)
    const { token } = await readBody(req.raw, maxBody)
    const cookie = typeof token === 'string' ? tokens.login(token, origins.isSecure(req.raw)) : null
    if (cookie === null) throw new HttpError('NOT_AUTHENTICATED')
    return answer(null, { status: 204, headers: { 'set-cookie': cookie } })
  })
  app.delete(`${API}/session`, ({ req }) => {
    origins.checkSite(req.raw, false)
    const cookie = tokens.logout(req.raw, origins.isSecure(req.raw))
    return answer(null, { status: 204, headers: { 'set-cookie': cookie } })
  })
}
