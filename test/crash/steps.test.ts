/** kill -9 after every single write of a task of ten steps. On servers: node test/crash/step-table.ts. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { cleanUp, folder } from './processes.ts'
import { report } from './seed.ts'
import { stepCampaign, WRITES } from './step-campaign.ts'

cleanUp()

test('a worker killed after any write of its task: no recorded step runs again, each has run, the task completes', async () => {
  const { violations, ...counts } = await stepCampaign({ address: join(folder(), 'steps.db'), leaseTtl: '1s' })
  report(`steps: ${JSON.stringify(counts)}`)
  expect(violations).toEqual([])
  expect(counts.kills).toBe(WRITES)
})

test('a run that forgets what was recorded is noticed', async () => {
  const { violations } = await stepCampaign({
    address: join(folder(), 'forgetful.db'),
    leaseTtl: '1s',
    isForgetful: true,
    after: [5],
  })
  expect(violations.some((sentence) => sentence.includes('ran again'))).toBe(true)
})
