/** What the tests on a real S3 server begin with: the server, or the reason why there is none. */
import { describe, test } from 'vitest'
import { serversOf } from '../../servers/ask.ts'
import { type S3Target, s3Target } from '../../servers/s3.ts'

const [server] = (await serversOf('s3'))!

/** A group of tests that are skipped by name, with the reason, where there is no server. */
export const onS3 = (what: string, tests: (target: S3Target) => void): void => {
  if ('missing' in server!)
    test(what, (context) => context.skip(`${server.name} could not be started: ${server.missing}`))
  else {
    const target = s3Target(server!.url)
    // As a user gives them: to this process, and to those that it starts.
    process.env['AWS_ACCESS_KEY_ID'] = target.accessKeyId
    process.env['AWS_SECRET_ACCESS_KEY'] = target.secretAccessKey
    describe(what, () => tests(target))
  }
}
