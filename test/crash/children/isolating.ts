/** A worker whose handlers run in processes of their own and never end. Says their pids; it is killed by the test. */
import { connect, silentLogger } from '../../../src/index.ts'
import { say } from './child.ts'

const module = new URL('./isolated-handlers.ts', import.meta.url)
const TYPES = ['tellsThenLoops', 'spawns']

const client = await connect('memory:', { logger: silentLogger })
const worker = client.worker()
for (const type of TYPES) worker.handle(type, { module, export: type, isolate: 'process' })
worker.start()

const pids: number[] = []
for (const type of TYPES) {
  const { id } = await client.submit(type, {}, { timeout: null })
  const isThere = async (): Promise<boolean> => {
    const progress = (await client.get(id)).progress as { pid: number; started?: number } | null
    if (progress !== null) pids.push(progress.pid, ...(progress.started === undefined ? [] : [progress.started]))
    return progress !== null
  }
  while (!(await isThere())) await new Promise((done) => setTimeout(done, 20))
}
say('ready', { pids })
