/** The demo on a store whose address has settings that every process needs. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { startSimulatedS3 } from '../../servers/simulated-s3/start.ts'

const MAIN = join(import.meta.dirname, '../../../src/cli/main.ts')

test('holdfast demo on S3 with an endpoint accounts for every task', { timeout: 150_000 }, async () => {
  const s3 = await startSimulatedS3({ latency: 5 })
  onTestFinished(() => s3.remove())
  const { url, credentials } = s3.fresh()
  const env = {
    ...process.env,
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
  }
  const { stdout } = await promisify(execFile)(process.execPath, [MAIN, 'demo', '--json', '--url', url], { env })
  const { isComplete, killed } = JSON.parse(stdout)
  expect({ isComplete, killed }).toEqual({ isComplete: true, killed: expect.stringMatching(/^worker-/) })
})
