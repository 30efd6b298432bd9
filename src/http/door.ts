/** One `fetch` for everything: checks who calls, finds the route, answers JSON. Mounts in any framework. */
import { readFileSync } from 'node:fs'
import { type Context, Hono } from 'hono'
import { type Client, HoldfastError, type Logger, silentLogger, type TaskChange } from '../index.ts'
import type { Access, Authorize, Tokens } from './access.ts'
import { answer, jsonAnswer } from './answers.ts'
import { readBody } from './body.ts'
import { checkAgainst } from './checking.ts'
import { Claims } from './claiming.ts'
import { Confirmations } from './confirmations.ts'
import { Deeds } from './deeds.ts'
import { DoorError, errorResponse, statusOf } from './errors.ts'
import { Feed } from './feed.ts'
import { addLogin } from './login.ts'
import { openApi } from './openapi.ts'
import { Origins } from './origin.ts'
import { type Pages, servePage } from './pages.ts'
import type { Call, JsonRoute, Right, Route } from './route.ts'
import { API, ROUTES } from './routes.ts'
import { redactor, Showing } from './showing.ts'
import { storeNow } from './store-now.ts'

export interface DoorOptions {
  /** Who may do what. Required: `new Tokens(…).authorize`, `behindProxy(…)`, `everybody`, or your own. */
  readonly authorize: Authorize
  /** Host names that it answers to, besides those of loopback; 'any' when the framework around it checks. */
  readonly hosts?: readonly string[] | 'any'
  /** Nothing can be changed through it, whoever calls. */
  readonly readOnly?: boolean
  /** Keys of payloads and tags whose values are not shown: `password`, `*token*`. A worker gets its task whole. */
  readonly redact?: readonly string[]
  /** Longest body, in bytes. Default: 1 MiB and some for what is around a payload. */
  readonly maxBody?: number
  /** Where it is mounted: '/queue'. Default: at the root. */
  readonly basePath?: string
  /** Lets browsers log in with a token: /login?token=…, and POST /api/v1/session. */
  readonly tokens?: Tokens
  /** The dashboard's files. */
  readonly pages?: Pages
  /** Text for GET /metrics. */
  readonly metrics?: () => Promise<{ readonly type: string; readonly text: string }>
  /** Told of requests that failed inside: method, route and code; never a payload. */
  readonly logger?: Logger
}

export interface Door {
  readonly fetch: (request: Request) => Response | Promise<Response>
  /** Every change in the store, by the follower that the viewers share; it follows while somebody listens. */
  onChange(listener: (change: TaskChange) => void): () => void
  /** Ends the streams. The client stays open: it belongs to the caller. */
  close(): void
}

const MAX_BODY = 1_048_576 + 65_536

export const createDoor = (client: Client, options: DoorOptions): Door => {
  if (typeof options.authorize !== 'function')
    throw new HoldfastError('INVALID_OPTION', 'authorize must be a function: say who may do what', {
      field: 'authorize',
    })
  const { readOnly = false, redact = [], maxBody = MAX_BODY, basePath = '', tokens, pages, metrics } = options
  const logger = options.logger ?? silentLogger
  const origins = new Origins(options.hosts ?? [])
  const isSecret = redact.length === 0 ? null : redactor(redact)
  const feed = new Feed(client)
  const confirmations = new Confirmations()
  const deeds = new Deeds()
  const claims = new Claims(client)
  const now = storeNow(client)
  const showings = {
    whole: new Showing({ payloads: true, isSecret, now }),
    without: new Showing({ payloads: false, isSecret, now }),
  }

  /** Throws unless the request comes from a good place and its sender has the right. */
  const admit = async (request: Request, right: Right): Promise<Access> => {
    const access = await options.authorize(request)
    if (access === null)
      throw new DoorError('NOT_AUTHENTICATED', undefined, { 'www-authenticate': 'Bearer realm="holdfast"' })
    origins.checkSite(request, access.ambient ?? false)
    if (!access.rights.includes(right)) throw new DoorError('NOT_ALLOWED', `this needs the right '${right}'`)
    return access
  }

  const callOf = async (route: Route, context: Context): Promise<Call> => {
    const request = context.req.raw
    const access = await admit(request, route.right)
    const isChange = route.method !== 'get'
    if (isChange && readOnly && !route.harmless) throw new DoorError('READ_ONLY')
    const query = checkedQuery(route, new URL(request.url))
    const hasBody = route.method === 'post' || route.method === 'patch'
    const body = hasBody ? await readBody(request, maxBody) : {}
    if (route.body !== undefined) checkAgainst(route.body, body, 'body')
    const rights = new Set(access.rights)
    const showing = rights.has('payloads') ? showings.whole : showings.without
    const params = context.req.param() as Record<string, string>
    return {
      client,
      params,
      query,
      body,
      rights,
      readOnly,
      showing,
      feed,
      confirmations,
      deeds,
      claims,
      // Made only for who asks: it costs as much as the rest.
      get signal() {
        return request.signal
      },
    }
  }

  const close = (): void => {
    feed.close()
    deeds.close()
  }
  const app = new Hono({ strict: false }).basePath(basePath)
  app.onError((thrown, context) => {
    const status = statusOf(thrown)
    if (status >= 500)
      logger.error(`${context.req.method} ${context.req.path}: ${thrown.message}`, { status, name: thrown.name })
    return errorResponse(thrown)
  })
  for (const route of ROUTES) {
    app.on(route.method.toUpperCase(), API + route.path.replace(/\{(\w+)\}/g, ':$1'), async (context) => {
      const call = await callOf(route, context)
      return 'events' in route ? eventStream(route.stream(call)) : answerOf(route, await route.run(call))
    })
  }
  const document = openApi(ownVersion(), basePath)
  app.get('/openapi.json', async ({ req }) => {
    await admit(req.raw, 'read')
    return jsonAnswer(document)
  })
  app.get('/health', async () => {
    await client.now()
    return jsonAnswer({ status: 'ok' })
  })
  if (metrics !== undefined) {
    app.get('/metrics', async ({ req }) => {
      await admit(req.raw, 'read')
      const { type, text } = await metrics()
      return answer(text, { headers: { 'content-type': type } })
    })
  }
  if (tokens !== undefined) addLogin(app, { tokens, origins, basePath, maxBody })
  app.notFound((context) => {
    const allowed = methodsAt(context.req.path.slice(basePath.length))
    if (allowed.length > 0)
      return errorResponse(new DoorError('WRONG_METHOD', undefined, { allow: allowed.join(', ') }))
    return (pages && servePage(pages, context.req.raw, basePath)) ?? errorResponse(new DoorError('NO_SUCH_ROUTE'))
  })
  const fetch = (request: Request): Response | Promise<Response> => {
    try {
      origins.checkHost(request)
    } catch (error) {
      return errorResponse(error)
    }
    return app.fetch(request)
  }
  return { fetch, onChange: (listener) => feed.listen(listener), close }
}

const answerOf = ({ answer: schema, status = 200 }: JsonRoute, value: unknown): Response =>
  schema === null ? answer(null, { status: 204 }) : jsonAnswer(value, { status })

const eventStream = (stream: ReadableStream<Uint8Array>): Response =>
  answer(stream, {
    // The second header is for nginx, which would hold events back.
    headers: { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' },
  })

const checkedQuery = (route: Route, { searchParams }: URL): Readonly<Record<string, string>> => {
  const given: Record<string, string> = {}
  for (const [name, value] of searchParams) {
    if (!Object.hasOwn(route.query ?? {}, name))
      throw new HoldfastError('INVALID_OPTION', `query parameter '${name}' cannot be given here`, { field: name })
    given[name] = Object.hasOwn(given, name) ? `${given[name]},${value}` : value
  }
  return given
}

const methodsAt = (path: string): string[] =>
  ROUTES.filter(({ path: known }) => new RegExp(`^${API}${known.replace(/\{\w+\}/g, '[^/]+')}/?$`).test(path)).map(
    ({ method }) => method.toUpperCase(),
  )

const ownVersion = (): string => {
  try {
    return String(JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version)
  } catch {
    // Bundled into something else.
    return 'unknown'
  }
}
