/** SPEC 3.6 on SQLite: an interruption costs no living worker its lease. */
import { interruptionTests } from './interruption-tests.ts'
import { cleanUp } from './processes.ts'

cleanUp()

interruptionTests('sqlite', ['write lock held by another process', 'all workers suspended'])
