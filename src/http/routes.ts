/** Every route of the API, in one list. */
import type { Route } from './route.ts'
import { QUEUES } from './routes/queues.ts'
import { TASKS } from './routes/tasks.ts'
import { WATCHING } from './routes/watching.ts'

export const ROUTES: readonly Route[] = [...TASKS, ...QUEUES, ...WATCHING]

/** Before every path. */
export const API = '/api/v1'
