/** Delayed tasks that several workers handle at once: each is found once, and no look fails. */
import { expect, test } from 'vitest'
import { type Logger, silentLogger } from '../../src/index.ts'
import { until } from '../crash/processes.ts'
import { begin, onNats } from './setup.ts'

onNats('tasks that are put to sleep again and again', (url) => {
  test('by four workers leave no look unanswered: a hint that another one removed is not an error', async () => {
    const { connect } = begin(url)
    const warnings: string[] = []
    const logger: Logger = { ...silentLogger, warn: (message) => void warnings.push(message) }
    const clients = await Promise.all(Array.from({ length: 4 }, () => connect({ logger })))
    let runs = 0
    for (const client of clients)
      client
        .worker({ concurrency: 5 })
        .handle('nap', (_, ctx) => {
          runs++
          return ctx.reschedule('150ms')
        })
        .start()
    const results = await clients[0]!.submitMany(Array.from({ length: 20 }, (_, n) => ({ type: 'nap', input: n })))
    expect(results.every(({ ok }) => ok)).toBe(true)
    await until('they have slept some hundred times', async () => runs > 400)
    expect(warnings.filter((warning) => warning.startsWith('cannot look for work'))).toEqual([])
  })
})
