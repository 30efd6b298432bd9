/** What tests of durable steps begin with: one worker with one handler, a log of what the handler did, and a faulty wire on demand. */
import { type ConnectOptions, type Handler, type Logger, silentLogger, type Task } from '../../../../src/index.ts'
import type { Store } from '../../../../src/store/store.ts'
import { type LossPlan, lossy } from '../../../../src/testing/lossy-store.ts'
import { type Bench, begin } from '../../setup.ts'

export interface Stage extends Bench {
  /** What handlers noted, in order. */
  readonly did: string[]
  /** Warnings and errors of the log. */
  readonly lines: string[]
  /** Decides the fate of each call of the worker's client to the store. */
  lose(plan: LossPlan): void
  /** Starts a worker with this handler of the type 'work'. */
  serve(handler: Handler): void
  /** Submits a task of the type 'work', and lets everything happen that needs no time. */
  submitted(options?: Parameters<Bench['client']['submit']>[2]): Promise<string>
  task(id: string): Promise<Task>
}

const pass: LossPlan = () => 'pass'

export const stage = async (options: ConnectOptions = {}): Promise<Stage> => {
  const lines: string[] = []
  const told = (message: string): void => void lines.push(message)
  const logger: Logger = { ...silentLogger, warn: told, error: told }
  let plan = pass
  const through = (store: Store): Store => lossy(store, (call, args) => plan(call, args))
  const bench = await begin({ random: () => 0.5, ...options, logger, through })
  const { client, clock } = bench
  return {
    ...bench,
    did: [],
    lines,
    lose: (next) => {
      plan = next
    },
    serve: (handler) => void client.worker({ id: 'w1', concurrency: 10 }).handle('work', handler).start(),
    submitted: async (submission) => {
      const { id } = await client.submit('work', 'input', submission)
      await clock.settle()
      return id
    },
    task: async (id) => {
      await clock.settle()
      return client.get(id)
    },
  }
}
