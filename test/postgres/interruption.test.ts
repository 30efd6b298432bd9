/** SPEC 3.6 on PostgreSQL: an interruption costs no living worker its lease. On a server of its own, which is stopped. */
import { interruptionTests } from '../crash/interruption-tests.ts'
import { cleanUp } from '../crash/processes.ts'
import { onPostgres } from './setup.ts'

cleanUp()

onPostgres('an interruption', () => {
  interruptionTests('postgres', ['server stopped and started', 'LOCK TABLE for writes alone'])
})
