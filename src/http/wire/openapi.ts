/** The OpenAPI 3.1 document, printed from the list of routes. */
import type { Code } from '../../index.ts'
import { API, type Route } from '../route.ts'
import { ROUTES } from '../routes.ts'
import { EXAMPLES } from './examples.ts'
import { ref, SCHEMAS, type Schema, shape, text } from './schemas.ts'
import { HTTP_CODES, type HttpCode, STATUSES } from './statuses.ts'

type Json = Record<string, unknown>

const json = (schema: Schema, example?: object): Json => ({
  'application/json': { schema, ...(example && { example }) },
})

/** Codes that every route may answer, in addition to its own. */
const ALWAYS: readonly (Code | HttpCode)[] = [
  'NOT_AUTHENTICATED',
  'NOT_ALLOWED',
  'CROSS_SITE',
  'WRONG_HOST',
  'INVALID_OPTION',
  'STORE_UNAVAILABLE',
  'INTERNAL',
]
const WITH_BODY: readonly (Code | HttpCode)[] = ['PAYLOAD_TOO_LARGE', 'NOT_JSON', 'READ_ONLY']

const statusOf = (code: Code | HttpCode): number =>
  code in HTTP_CODES ? HTTP_CODES[code as HttpCode].status : STATUSES[code as Code]

const refusals = (route: Route): Json => {
  const codes = [...(route.refuses ?? []), ...ALWAYS, ...(route.method === 'get' ? [] : WITH_BODY)]
  const byStatus = Map.groupBy(codes, statusOf)
  return Object.fromEntries(
    [...byStatus].map(([status, some]) => [
      String(status),
      { description: [...new Set(some)].join(', '), content: json(ref('Error')) },
    ]),
  )
}

const answer = (route: Route): Json => {
  if ('events' in route) {
    const events = Object.entries(route.events).map(([event, data]) => ({
      type: 'object',
      properties: { event: { const: event }, data },
    }))
    const text = { type: 'string', contentMediaType: 'text/event-stream', 'x-events': events }
    return { 200: { description: 'Server-sent events', content: { 'text/event-stream': { schema: text } } } }
  }
  if (route.answer === null) return { 204: { description: 'Done' } }
  const content = json(route.answer, EXAMPLES[route.name]?.answer)
  return {
    [route.status ?? 200]: { description: route.summary, content },
    ...(route.isNotNew && { 200: { description: 'It existed already: nothing was created', content } }),
  }
}

const parameters = (route: Route): Json[] => [
  ...[...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name: name!,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  })),
  ...Object.entries(route.query ?? {}).map(([name, schema]) => ({ name, in: 'query', required: false, schema })),
]

const operation = (route: Route): Json => ({
  operationId: route.name,
  summary: route.summary,
  tags: [route.path.split('/')[1]],
  'x-right': route.right,
  parameters: parameters(route),
  ...(route.body === undefined
    ? null
    : {
        requestBody: {
          required: (route.body.required?.length ?? 0) > 0,
          content: json(route.body, EXAMPLES[route.name]?.body),
        },
      }),
  responses: { ...answer(route), ...refusals(route) },
})

const refused = { description: 'NOT_AUTHENTICATED', content: json(ref('Error')) }
const TOKEN = { token: 'the token of the server, 24 characters or more' }

/** What is not one of the routes: for browsers, for monitoring, and this document. */
const besides = (basePath: string): Readonly<Record<string, Json>> => {
  // The other paths are below /api/v1.
  const servers = [{ url: basePath || '/' }]
  const plain = (operationId: string, summary: string, responses: Json, parameters: Json[] = []): Json => ({
    operationId,
    summary,
    tags: ['server'],
    parameters,
    responses,
  })
  const text401 = { 401: refused }
  return {
    '/session': {
      post: {
        ...plain('logIn', 'Exchanges a token for the cookie of a session: 12 hours without use, 7 days at most', {
          204: { description: 'Logged in', headers: { 'set-cookie': { schema: text() } } },
          ...text401,
        }),
        security: [],
        requestBody: { required: true, content: json(shape({ token: text() }), TOKEN) },
      },
      delete: {
        ...plain('logOut', 'Ends the session of this browser', { 204: { description: 'Logged out' } }),
        security: [],
      },
    },
    '/login': {
      servers,
      get: {
        ...plain(
          'openLink',
          'The link that `holdfast serve` prints: logs the browser in',
          { 303: { description: 'To the dashboard' }, ...text401 },
          [{ name: 'token', in: 'query', required: true, schema: text() }],
        ),
        security: [],
      },
    },
    '/health': {
      servers,
      get: {
        ...plain('health', 'Whether the server runs and its store answers', {
          200: {
            description: 'It does',
            content: json(shape({ status: { type: 'string', enum: ['ok'] } }), { status: 'ok' }),
          },
          503: { description: 'The store does not answer', content: json(ref('Error')) },
        }),
        security: [],
      },
    },
    '/metrics': {
      servers,
      get: plain('metrics', 'Metrics for Prometheus; right `read`. Only where the server has them', {
        200: { description: 'The metrics', content: { 'text/plain': { schema: text() } } },
        ...text401,
      }),
    },
    '/openapi.json': {
      servers,
      get: plain('openapi', 'This document; right `read`', {
        200: { description: 'OpenAPI 3.1', content: json({ type: 'object' }) },
        ...text401,
      }),
    },
  }
}

/** The description of the HTTP API in OpenAPI 3.1. */
export const openApi = (version: string, basePath = ''): Json => {
  const paths: Record<string, Json> = {}
  for (const route of ROUTES) {
    paths[route.path] ??= {}
    paths[route.path]![route.method] = operation(route)
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Holdfast', version, license: { name: 'MIT', identifier: 'MIT' } },
    servers: [{ url: `${basePath}${API}` }],
    security: [{ token: [] }, { session: [] }],
    paths: { ...paths, ...besides(basePath) },
    components: {
      schemas: SCHEMAS,
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer' },
        session: { type: 'apiKey', in: 'cookie', name: 'holdfast-…', description: 'Set in the browser after login' },
      },
    },
  }
}
