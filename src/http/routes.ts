/** Every route of the API, in one list. */
import type { Route } from './route.ts'
import { BULK } from './routes/bulk.ts'
import { DEAD_LETTERS } from './routes/dead-letters.ts'
import { LEASES } from './routes/leases.ts'
import { MOVES } from './routes/moves.ts'
import { QUEUES } from './routes/queues.ts'
import { SCHEDULES } from './routes/schedules.ts'
import { SESSIONS } from './routes/sessions.ts'
import { STEPS } from './routes/steps.ts'
import { SUBMITTING } from './routes/submitting.ts'
import { TASKS } from './routes/tasks.ts'
import { WATCHING } from './routes/watching.ts'

export const ROUTES: readonly Route[] = [
  ...SUBMITTING,
  ...BULK,
  ...TASKS,
  ...MOVES,
  ...LEASES,
  ...STEPS,
  ...DEAD_LETTERS,
  ...SCHEDULES,
  ...QUEUES,
  ...WATCHING,
  ...SESSIONS,
]
