/** How fast it is here and now: printed, with bounds that only a mistake would break. */
import { expect, onTestFinished, test } from 'vitest'
import { connect, silentLogger } from '../../src/index.ts'
import { report } from '../crash/seed.ts'
import { startNats } from '../servers/nats.ts'
import { onNats } from './setup.ts'

/** Tasks a second, while `waiting` of them wait; the worker has not seen them before. */
const drained = async (address: string, waiting: number, count: number): Promise<{ submit: number; drain: number }> => {
  const producer = await connect(address, { create: true, logger: silentLogger })
  const begun = performance.now()
  for (let sent = 0; sent < waiting; sent += 1_000) {
    const tasks = Array.from({ length: Math.min(1_000, waiting - sent) }, () => ({ type: 'work', input: null }))
    await producer.submitMany(tasks)
  }
  const submitted = performance.now()
  await producer.close()
  await using client = await connect(address, { logger: silentLogger })
  const enough = Promise.withResolvers<void>()
  let ran = 0
  const from = performance.now()
  const worker = client.worker({ concurrency: 200 }).handle('work', () => {
    if (++ran === count) enough.resolve()
  })
  const running = worker.run()
  await enough.promise
  const took = performance.now() - from
  await worker.stop()
  await running
  return { submit: (waiting / (submitted - begun)) * 1_000, drain: (count / took) * 1_000 }
}

onNats('the rate', () => {
  test('is printed for the server as it comes and for sync_interval: always', { timeout: 120_000 }, async () => {
    for (const syncAlways of [false, true]) {
      const server = await startNats({ syncAlways })
      onTestFinished(() => server.remove())
      const { submit, drain } = await drained(`${server.url}/rate`, 1_000, 1_000)
      const together = 1 / (1 / submit + 1 / drain)
      report(
        `nats ${syncAlways ? 'sync_interval: always' : 'as it comes'}: submit ${submit.toFixed(0)}/s, drain ${drain.toFixed(0)}/s, together ${together.toFixed(0)}/s`,
      )
      expect(together).toBeGreaterThan(20)
    }
  })

  test('does not fall with what waits', { timeout: 120_000 }, async () => {
    const server = await startNats()
    onTestFinished(() => server.remove())
    await drained(`${server.url}/warm-up`, 500, 500)
    // The best of three in turns: a thousand tasks take a third of a second, and other tests run beside this one.
    let [few, many] = [0, 0]
    for (let turn = 1; turn <= 3; turn++) {
      few = Math.max(few, (await drained(`${server.url}/few-${turn}`, 1_000, 1_000)).drain)
      many = Math.max(many, (await drained(`${server.url}/many-${turn}`, 10_000, 1_000)).drain)
    }
    report(`nats: drain ${few.toFixed(0)}/s of 1,000, ${many.toFixed(0)}/s of 10,000 waiting`)
    expect(many).toBeGreaterThan(few * 0.3)
  })
})
