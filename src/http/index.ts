/** `holdfast/http`: the API as one `fetch` handler, for any framework or the server of `holdfast serve`. */
export {
  type Access,
  type Authorize,
  behindProxy,
  EVERYTHING,
  everybody,
  type Token,
  Tokens,
  VIEWER,
  WORKER,
} from './auth/access.ts'
export { createHttpHandler, type HttpHandler, type HttpHandlerOptions } from './handler.ts'
export { dashboardPages, type Pages } from './pages.ts'
export { RIGHTS, type Right } from './route.ts'
export { type Listening, listen } from './serve.ts'
export { openApi } from './wire/openapi.ts'
