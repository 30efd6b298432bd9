/** Lists that come in pages of two, as a server may give them: everything is seen. */
import { expect, onTestFinished, test } from 'vitest'
import { connect, silentLogger } from '../../../src/index.ts'
import { startFaultProxy } from '../../servers/http-fault-proxy.ts'
import { addressOf, freshPrefix } from '../setup.ts'
import { onS3 } from './setup.ts'

onS3('a server with small pages', (target) => {
  test('shows every task to lists, counts and looks', async () => {
    const { endpoint, bucket: _, ...keys } = target
    const proxy = await startFaultProxy({ seed: 1, endpoint, pages: { of: 2, keys } })
    onTestFinished(() => proxy.close())
    const client = await connect(addressOf({ ...target, endpoint: proxy.endpoint }, freshPrefix()), {
      create: true,
      logger: silentLogger,
    })
    onTestFinished(() => client.close())
    // Each of its own priority, so that no two share a hint.
    const tasks = 25
    await client.submitMany(Array.from({ length: tasks }, (_, priority) => ({ type: 'a', input: null, priority })))
    expect((await client.list({ limit: 1_000 })).tasks).toHaveLength(tasks)
    expect((await client.count({ status: 'ready' })).count).toBe(tasks)
    const worker = client.worker({ concurrency: tasks }).handle('a', async () => null)
    await worker.drain()
    expect((await client.count({ status: 'completed' })).count).toBe(tasks)
    expect(proxy.requests.get('LIST')).toBeGreaterThan(tasks)
  })
})
