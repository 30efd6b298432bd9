/** SPEC 3.6 on S3: an interruption costs no living worker its lease. On a server of its own, which is killed. */
import { interruptionTests } from '../../crash/interruption-tests.ts'
import { cleanUp } from '../../crash/processes.ts'
import { onS3 } from './setup.ts'

cleanUp()

onS3('an interruption', () => {
  interruptionTests('s3', ['gateway killed and started', 'server suspended', 'all workers suspended'])
})
