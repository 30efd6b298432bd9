/** Every route of the API, in one list. */
import type { Route } from './route.ts'
import { DEAD_LETTERS } from './routes/dead-letters.ts'
import { LEASES } from './routes/leases.ts'
import { MOVES } from './routes/moves.ts'
import { QUEUES } from './routes/queues.ts'
import { SCHEDULES } from './routes/schedules.ts'
import { SUBMITTING } from './routes/submitting.ts'
import { TASKS } from './routes/tasks.ts'
import { WATCHING } from './routes/watching.ts'

export const ROUTES: readonly Route[] = [
  ...SUBMITTING,
  ...TASKS,
  ...MOVES,
  ...LEASES,
  ...DEAD_LETTERS,
  ...SCHEDULES,
  ...QUEUES,
  ...WATCHING,
]

/** The prefix of every path. */
export const API = '/api/v1'
