/** From a request to a call of a route: who calls, with which right, and what the request says. Throws where a caller must be refused. */
import type { Context } from 'hono'
import { HoldfastError } from '../index.ts'
import type { Access, Authorize } from './auth/access.ts'
import type { Callers } from './auth/callers.ts'
import type { Origins } from './auth/origin.ts'
import type { Call, Right, Route } from './route.ts'
import { readBody } from './wire/body.ts'
import { HttpError } from './wire/errors.ts'
import { tagNameOf } from './wire/queries.ts'
import type { Redaction } from './wire/redaction.ts'
import { checkAgainst } from './wire/validate.ts'

interface CallsHost {
  readonly authorize: Authorize
  readonly origins: Origins
  readonly callers: Callers
  readonly maxBody: number
  /** For callers with the right `payloads`, and for all others. */
  readonly redactions: { readonly whole: Redaction; readonly without: Redaction }
  /** The same for every call. */
  readonly shared: Pick<
    Call,
    'readOnly' | 'feed' | 'charts' | 'health' | 'sessions' | 'confirmations' | 'jobs' | 'claims'
  >
}

export class Calls {
  readonly #host: CallsHost

  constructor(host: CallsHost) {
    this.#host = host
  }

  /** Throws unless the origin is accepted and the caller has the right. */
  async admit(request: Request, right: Right): Promise<Access> {
    const access = await this.#host.authorize(request)
    if (access === null)
      throw new HttpError('NOT_AUTHENTICATED', undefined, { 'www-authenticate': 'Bearer realm="holdfast"' })
    this.#host.origins.checkSite(request, access.ambient ?? false)
    if (!access.rights.includes(right)) throw new HttpError('NOT_ALLOWED', `this requires the right '${right}'`)
    return access
  }

  async of(route: Route, context: Context): Promise<Call> {
    const { callers, maxBody, redactions, shared } = this.#host
    const request = context.req.raw
    const access = await this.admit(request, route.right)
    const isChange = route.method !== 'get'
    if (isChange && shared.readOnly && !route.harmless) throw new HttpError('READ_ONLY')
    const query = checkedQuery(route, new URL(request.url))
    const hasBody = route.method === 'post' || route.method === 'patch'
    const body = hasBody ? await readBody(request, maxBody) : {}
    if (route.body !== undefined) checkAgainst(route.body, body, 'body')
    const rights = new Set(access.rights)
    const redaction = rights.has('payloads') ? redactions.whole : redactions.without
    const params = context.req.param() as Record<string, string>
    const { tag } = { ...query, ...(body['query'] as object | undefined) } as { tag?: string | { name: string } }
    if (tag !== undefined) redaction.checkFilter(typeof tag === 'string' ? tagNameOf(tag) : tag.name)
    return {
      ...shared,
      client: callers.clientOf(access),
      params,
      query,
      body,
      rights,
      redaction,
      access,
      // Created on demand: it costs as much as the rest.
      get signal() {
        return request.signal
      },
    }
  }
}

const checkedQuery = (route: Route, { searchParams }: URL): Readonly<Record<string, string>> => {
  const given: Record<string, string> = {}
  for (const [name, value] of searchParams) {
    if (!Object.hasOwn(route.query ?? {}, name))
      throw new HoldfastError('INVALID_OPTION', `query parameter '${name}' is not allowed here`, { field: name })
    given[name] = Object.hasOwn(given, name) ? `${given[name]},${value}` : value
  }
  return given
}
