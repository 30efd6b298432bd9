/** A handler that computes for three lease lengths without yielding, while another worker looks for work. */
import { connect, silentLogger } from '../../src/index.ts'
import { openAt } from './address.ts'
import type { Plant } from './planted.ts'
import { folder, type StartOptions, start } from './processes.ts'

/** `file` is a path, or the URL of a server. */
export const block = async (file: string, plant: Plant, lease = 700, options: StartOptions = {}) => {
  const place = folder()
  const client = await connect(await openAt(file), { logger: silentLogger })
  const leaseTtl = `${lease}ms`
  const other = start('worker', { file, folder: place, seed: 1, takes: [0, 0], leaseTtl, barrier: true })
  await other.heard('ready')
  const blocker = start('blocker', { file, leaseTtl, blocks: 3 * lease, plant }, options)
  await blocker.heard('ready')
  const { id } = await client.submit('work', null, { retryPolicy: { base: '10ms', max: '10ms' } })
  await blocker.heard('started')
  other.signal('SIGUSR2')
  const { code } = await blocker.heard('ended')
  const task = await client.waitForEnd(id)
  await client.close()
  return { code, task, moves: task.history.map(({ move }) => move) }
}
