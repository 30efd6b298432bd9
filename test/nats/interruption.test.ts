/** SPEC 3.6 on NATS: an interruption costs no living worker its lease. On a server of its own, which is killed. */
import { interruptionTests } from '../crash/interruption-tests.ts'
import { cleanUp } from '../crash/processes.ts'
import { onNats } from './setup.ts'

cleanUp()

onNats('an interruption', () => {
  interruptionTests('nats', ['server killed and started'])
})
