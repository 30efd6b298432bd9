/** SPEC 3.6 on SQLite: an interruption costs no living worker its lease. */
import { interruptionTests } from './interruption-tests.ts'
import { cleanUp } from './processes.ts'

cleanUp()

// Behind a lock the store itself takes no leases, whatever takers ask for.
interruptionTests('sqlite', ['write lock held by another process', 'all workers suspended'], 'all workers suspended')
