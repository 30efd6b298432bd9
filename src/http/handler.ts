/** One `fetch` handler for everything: authenticates, routes, answers JSON. Mounts in any framework. */
import { type Context, Hono } from 'hono'
import { type Client, HoldfastError, type Logger, silentLogger, type TaskChange } from '../index.ts'
import { version } from '../version.ts'
import type { Access, Authorize, Tokens } from './auth/access.ts'
import { addLogin } from './auth/login.ts'
import { Origins } from './auth/origin.ts'
import { BackgroundJobs } from './background-jobs.ts'
import { Claims } from './claims.ts'
import { Confirmations } from './confirmations.ts'
import { Feed } from './live/feed.ts'
import { type Pages, servePage } from './pages.ts'
import type { Call, JsonRoute, Right, Route } from './route.ts'
import { API, ROUTES } from './routes.ts'
import { storeNow } from './store-now.ts'
import { answer, jsonAnswer } from './wire/answers.ts'
import { readBody } from './wire/body.ts'
import { errorResponse, HttpError, statusOf } from './wire/errors.ts'
import { openApi } from './wire/openapi.ts'
import { Redaction, redactor } from './wire/redaction.ts'
import { checkAgainst } from './wire/validate.ts'

export interface HttpHandlerOptions {
  /** Who may do what. Required: `new Tokens(…).authorize`, `behindProxy(…)`, `everybody`, or your own. */
  readonly authorize: Authorize
  /** Host names to accept, in addition to those of loopback; 'any' if the framework checks. */
  readonly hosts?: readonly string[] | 'any'
  /** Refuses every change, whatever the caller's rights. */
  readonly readOnly?: boolean
  /** Keys of payloads and tags whose values are hidden: `password`, `*token*`. A worker gets its task unredacted. */
  readonly redact?: readonly string[]
  /** Maximum size of a body, in bytes. Default: slightly more than 1 MiB, for a payload and its envelope. */
  readonly maxBody?: number
  /** The path where it is mounted: '/queue'. Default: the root. */
  readonly basePath?: string
  /** Lets browsers log in with a token: /login?token=…, and POST /api/v1/session. */
  readonly tokens?: Tokens
  /** The dashboard's files. */
  readonly pages?: Pages
  /** Text for GET /metrics. */
  readonly metrics?: () => Promise<{ readonly type: string; readonly text: string }>
  /** Logs internal errors with method, route and code; never a payload. */
  readonly logger?: Logger
}

export interface HttpHandler {
  readonly fetch: (request: Request) => Response | Promise<Response>
  /** Every change in the store, from the follower that viewers share. It runs while there are listeners. */
  onChange(listener: (change: TaskChange) => void): () => void
  /** Ends the streams. The client stays open, because it belongs to the caller. */
  close(): void
}

const MAX_BODY = 1_048_576 + 65_536

export const createHttpHandler = (client: Client, options: HttpHandlerOptions): HttpHandler => {
  if (typeof options.authorize !== 'function')
    throw new HoldfastError('INVALID_OPTION', 'authorize must be a function that decides the rights of each caller', {
      field: 'authorize',
    })
  const { readOnly = false, redact = [], maxBody = MAX_BODY, basePath = '', tokens, pages, metrics } = options
  const logger = options.logger ?? silentLogger
  const origins = new Origins(options.hosts ?? [])
  const isSecret = redact.length === 0 ? null : redactor(redact)
  const feed = new Feed(client)
  const confirmations = new Confirmations()
  const jobs = new BackgroundJobs()
  const claims = new Claims(client)
  const now = storeNow(client)
  const redactions = {
    whole: new Redaction({ payloads: true, isSecret, now }),
    without: new Redaction({ payloads: false, isSecret, now }),
  }

  /** Throws unless host and origin are accepted and the caller has the right. */
  const admit = async (request: Request, right: Right): Promise<Access> => {
    const access = await options.authorize(request)
    if (access === null)
      throw new HttpError('NOT_AUTHENTICATED', undefined, { 'www-authenticate': 'Bearer realm="holdfast"' })
    origins.checkSite(request, access.ambient ?? false)
    if (!access.rights.includes(right)) throw new HttpError('NOT_ALLOWED', `this requires the right '${right}'`)
    return access
  }

  const callOf = async (route: Route, context: Context): Promise<Call> => {
    const request = context.req.raw
    const access = await admit(request, route.right)
    const isChange = route.method !== 'get'
    if (isChange && readOnly && !route.harmless) throw new HttpError('READ_ONLY')
    const query = checkedQuery(route, new URL(request.url))
    const hasBody = route.method === 'post' || route.method === 'patch'
    const body = hasBody ? await readBody(request, maxBody) : {}
    if (route.body !== undefined) checkAgainst(route.body, body, 'body')
    const rights = new Set(access.rights)
    const redaction = rights.has('payloads') ? redactions.whole : redactions.without
    const params = context.req.param() as Record<string, string>
    return {
      client,
      params,
      query,
      body,
      rights,
      readOnly,
      redaction,
      feed,
      confirmations,
      jobs,
      claims,
      // Created on demand: it costs as much as the rest.
      get signal() {
        return request.signal
      },
    }
  }

  const close = (): void => {
    feed.close()
    jobs.close()
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
  const document = openApi(version(), basePath)
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
      return errorResponse(new HttpError('WRONG_METHOD', undefined, { allow: allowed.join(', ') }))
    return (pages && servePage(pages, context.req.raw, basePath)) ?? errorResponse(new HttpError('NO_SUCH_ROUTE'))
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
    // The second header keeps nginx from buffering events.
    headers: { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' },
  })

const checkedQuery = (route: Route, { searchParams }: URL): Readonly<Record<string, string>> => {
  const given: Record<string, string> = {}
  for (const [name, value] of searchParams) {
    if (!Object.hasOwn(route.query ?? {}, name))
      throw new HoldfastError('INVALID_OPTION', `query parameter '${name}' is not allowed here`, { field: name })
    given[name] = Object.hasOwn(given, name) ? `${given[name]},${value}` : value
  }
  return given
}

const methodsAt = (path: string): string[] =>
  ROUTES.filter(({ path: known }) => new RegExp(`^${API}${known.replace(/\{\w+\}/g, '[^/]+')}/?$`).test(path)).map(
    ({ method }) => method.toUpperCase(),
  )
