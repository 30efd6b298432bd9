/** One `fetch` handler for everything: authenticates, routes, answers JSON. Mounts in any framework. */
import { Hono } from 'hono'
import { checkOptionNames } from '../core/values/option-names.ts'
import { type Charts, type Client, HoldfastError, type Logger, silentLogger, type TaskChange } from '../index.ts'
import { version } from '../version.ts'
import type { Authorize } from './auth/access.ts'
import { Callers } from './auth/callers.ts'
import { addLogin } from './auth/login.ts'
import { Origins } from './auth/origin.ts'
import type { Tokens } from './auth/tokens.ts'
import { BackgroundJobs } from './background-jobs.ts'
import { Calls } from './calls.ts'
import { Claims } from './claims.ts'
import { Confirmations } from './confirmations.ts'
import { Feed } from './live/feed.ts'
import { Health } from './live/health.ts'
import { type Pages, servePage } from './pages.ts'
import { API, type JsonRoute } from './route.ts'
import { ROUTES } from './routes.ts'
import { storeNow } from './store-now.ts'
import { answer, jsonAnswer } from './wire/answers.ts'
import { errorResponse, HttpError, statusOf } from './wire/errors.ts'
import { fitted } from './wire/fitted.ts'
import { openApi } from './wire/openapi.ts'
import { Redaction, redactor } from './wire/redaction.ts'

/** Options of `createHttpHandler`. */
export interface HttpHandlerOptions {
  /** Who may do what. Required: `new Tokens(…).authorize`, `behindProxy(…)`, `everybody`, or your own. */
  readonly authorize: Authorize
  /** Host names to accept, in addition to those of loopback; 'any' if the framework checks. */
  readonly hosts?: readonly string[] | 'any'
  /** A proxy before it sets X-Forwarded-Proto: over https, cookies are Secure. */
  readonly trustProxy?: boolean
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
  readonly pages?: Pages | null
  /** `client.charts().start()` records charts for as long as the process runs. Default: they are counted while they are read. */
  readonly charts?: Charts
  /** Text for GET /metrics. */
  readonly metrics?: () => Promise<{ readonly type: string; readonly text: string }>
  /** Logs internal errors with method, route and code; never a payload. */
  readonly logger?: Logger
}

/** The HTTP API as one `fetch` handler. */
export interface HttpHandler {
  readonly fetch: (request: Request) => Response | Promise<Response>
  /** Every change in the store, from the follower that viewers share. It runs while there are listeners. */
  onChange(listener: (change: TaskChange) => void): () => void
  /** Ends the streams. The client stays open, because it belongs to the caller. */
  close(): void
}

const OPTIONS: ReadonlySet<string> = new Set<keyof HttpHandlerOptions>([
  'authorize',
  'hosts',
  'trustProxy',
  'readOnly',
  'redact',
  'maxBody',
  'basePath',
  'tokens',
  'pages',
  'charts',
  'metrics',
  'logger',
])

const MAX_BODY = 1_048_576 + 65_536

/** Makes the HTTP API of a client as one `fetch` handler, to be mounted in any server. */
export const createHttpHandler = (client: Client, options: HttpHandlerOptions): HttpHandler => {
  checkOptionNames(options, OPTIONS, 'createHttpHandler')
  if (typeof options.authorize !== 'function')
    throw new HoldfastError('INVALID_OPTION', 'authorize must be a function that decides the rights of each caller', {
      field: 'authorize',
    })
  const { readOnly = false, redact = [], maxBody = MAX_BODY, basePath = '', tokens, pages = null, metrics } = options
  const logger = options.logger ?? silentLogger
  const origins = new Origins(options.hosts ?? [], options.trustProxy)
  const isSecret = redact.length === 0 ? null : redactor(redact)
  const now = storeNow(client)
  const feed = new Feed(client)
  const charts = options.charts ?? client.charts()
  const jobs = new BackgroundJobs(now)
  const claims = new Claims(client)
  const calls = new Calls({
    authorize: options.authorize,
    origins,
    callers: new Callers(client),
    maxBody,
    redactions: {
      whole: new Redaction({ payloads: true, isSecret, now }),
      without: new Redaction({ payloads: false, isSecret, now }),
    },
    shared: {
      readOnly,
      feed,
      charts,
      health: new Health(client),
      sessions: tokens?.sessions ?? null,
      confirmations: new Confirmations(),
      jobs,
      claims,
    },
  })

  const close = (): void => {
    feed.close()
    claims.close()
    charts.stop()
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
      const call = await calls.of(route, context)
      const { raw } = context.req
      // A HEAD request has no reader that would end the stream.
      if ('events' in route) return eventStream(raw.method === 'HEAD' ? null : route.stream(call))
      return answerOf(raw, route, await route.run(call))
    })
  }
  const document = openApi(version(), basePath)
  app.get('/openapi.json', async ({ req }) => {
    await calls.admit(req.raw, 'read')
    return jsonFor(req.raw, document)
  })
  app.get('/health', async () => {
    await client.now()
    return jsonAnswer({ status: 'ok' })
  })
  if (metrics !== undefined) {
    app.get('/metrics', async ({ req }) => {
      await calls.admit(req.raw, 'read')
      const { type, text } = await metrics()
      return fitted(req.raw, text, { headers: { 'content-type': type } })
    })
  }
  if (tokens !== undefined) addLogin(app, { tokens, origins, basePath, maxBody, hasPages: pages !== null })
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

const jsonFor = (request: Request, value: unknown, status = 200): Promise<Response> =>
  fitted(request, JSON.stringify(value), { status, headers: { 'content-type': 'application/json' } })

const answerOf = async (request: Request, route: JsonRoute, value: unknown): Promise<Response> => {
  const { answer: schema, status = 200, isNotNew } = route
  if (schema === null) return answer(null, { status: 204 })
  return jsonFor(request, value, isNotNew?.(value as object) ? 200 : status)
}

const eventStream = (stream: ReadableStream<Uint8Array> | null): Response =>
  answer(stream, {
    // The second header keeps nginx from buffering events.
    headers: { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' },
  })

const methodsAt = (path: string): string[] =>
  ROUTES.filter(({ path: known }) => new RegExp(`^${API}${known.replace(/\{\w+\}/g, '[^/]+')}/?$`).test(path)).map(
    ({ method }) => method.toUpperCase(),
  )
