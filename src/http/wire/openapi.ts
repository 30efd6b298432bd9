/** The OpenAPI 3.1 document, printed from the list of routes. */
import type { Code } from '../../index.ts'
import type { Route } from '../route.ts'
import { API, ROUTES } from '../routes.ts'
import { ref, SCHEMAS, type Schema } from './schemas.ts'
import { HTTP_CODES, type HttpCode, STATUSES } from './statuses.ts'

type Json = Record<string, unknown>

const json = (schema: Schema): Json => ({ 'application/json': { schema } })

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
  return { [route.status ?? 200]: { description: route.summary, content: json(route.answer) } }
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
    : { requestBody: { required: (route.body.required?.length ?? 0) > 0, content: json(route.body) } }),
  responses: { ...answer(route), ...refusals(route) },
})

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
    paths,
    components: {
      schemas: SCHEMAS,
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer' },
        session: { type: 'apiKey', in: 'cookie', name: 'holdfast-…', description: 'Set in the browser after login' },
      },
    },
  }
}
