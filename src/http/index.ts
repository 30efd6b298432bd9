/** `holdfast/http`: the API as one `fetch` handler, for any framework or the server of `holdfast serve`. */
export { type Access, type Authorize, behindProxy, everybody } from './auth/access.ts'
export { EVERYTHING, OPERATOR, ROLES, type Role, VIEWER, WORKER } from './auth/roles.ts'
export { type Token, Tokens } from './auth/tokens.ts'
export { createHttpHandler, type HttpHandler, type HttpHandlerOptions } from './handler.ts'
export { dashboardPages, type Pages } from './pages.ts'
export { RIGHTS, type Right } from './route.ts'
export { type Listening, type ListenOptions, listen, nodeListener } from './serve.ts'
export { openApi } from './wire/openapi.ts'
