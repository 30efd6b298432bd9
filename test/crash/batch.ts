/** Two tasks of one batch: the first blocks the event loop until another worker has run the second. */
import { connect, silentLogger } from '../../src/index.ts'
import { openAt } from './address.ts'
import type { Plant } from './planted.ts'
import { start, until } from './processes.ts'

/** `file` is a path, or the URL of a server. The fences under which the second task began, in the order of time. */
export const blockBatch = async (file: string, plant: Plant, lease = 700) => {
  const client = await connect(await openAt(file), { logger: silentLogger })
  const leaseTtl = `${lease}ms`
  const options = { retryPolicy: { base: '10ms', max: '10ms' }, timeout: `${lease}ms` } as const
  const blocker = start('batch-blocker', { file, leaseTtl, blocks: 6 * lease, plant })
  await blocker.heard('ready')
  const { id: first } = await client.submit('work', 'first', { ...options, priority: 1, timeout: '60s' })
  const { id: second } = await client.submit('work', 'second', options)
  blocker.signal('SIGUSR2')
  await blocker.heard('began', ({ id }) => id === first)
  const begun: { fence: number; at: number }[] = []
  const other = client.worker({ leaseTtl }).handle('work', (_, { task, fence }) => {
    if (task.id === second) begun.push({ fence, at: Date.now() })
  })
  other.start()
  await blocker.heard('unblocked')
  await until('both have ended', async () => {
    const tasks = await Promise.all([client.get(first), client.get(second)])
    return tasks.every(({ completedAt }) => completedAt !== null)
  })
  blocker.signal('SIGTERM')
  await blocker.end()
  await other.stop()
  const task = await client.get(second)
  await client.close()
  for (const { id, fence, at } of blocker.said('began'))
    if (id === second) begun.push({ fence: fence as number, at: at as number })
  return { fences: begun.sort((a, b) => a.at - b.at).map(({ fence }) => fence), task }
}
