/** The program of a child, started as a thread or a process. Runs isolated handlers one at a time until its channel closes. */
import { parentPort, Worker } from 'node:worker_threads'
import { rescheduleWish } from '../../../core/failure.ts'
import { encodeOutput } from '../../../core/values/output.ts'
import { decodePayload } from '../../../core/values/payload.ts'
import type { Handler } from '../../handler.ts'
import { IsolatedContext } from './context.ts'
import { errorText } from './errors.ts'
import type { FromChild, ToChild } from './protocol.ts'

type RunMessage = Extract<ToChild, { readonly kind: 'run' }>

let current: IsolatedContext | null = null

const send = (message: FromChild): void => {
  if (parentPort !== null) parentPort.postMessage(message)
  // If the worker is gone, this process is about to be killed too.
  else if (process.connected) process.send!(message)
}

const receive = (message: ToChild): void => {
  if (message.kind === 'run') void run(message)
  else if (current?.run !== message.run) return
  else if (message.kind === 'abort') current.abort(message.reason)
  else current.remote.heard(message)
}

const run = async (message: RunMessage): Promise<void> => {
  const ctx = new IsolatedContext(message, send)
  current = ctx
  let end: FromChild
  try {
    const handler = await load(message)
    const { input, encoding } = message
    const returned = await handler(input === null ? ctx.task.input : decodePayload(input, encoding), ctx)
    end =
      rescheduleWish(returned) !== null
        ? { kind: 'threw', run: message.run, error: errorText(returned) }
        : { kind: 'returned', run: message.run, output: encodeOutput(returned, message.maxPayload) }
  } catch (thrown) {
    end = { kind: 'threw', run: message.run, error: errorText(thrown) }
  }
  ctx.close()
  current = null
  send(end)
}

const load = async ({ module, export: name }: RunMessage): Promise<Handler> => {
  const exported = ((await import(module)) as Readonly<Record<string, unknown>>)[name]
  if (typeof exported !== 'function') throw new TypeError(`${module} has no function '${name}' among its exports`)
  return exported as Handler
}

// ── when it is a process ─────────────────────────────────────────────────────────────────────────────────────────

/** Kills this process and everything that the handler has started, so that nothing outlives the worker. Windows has no process groups. */
const killOwnGroup = (): void => {
  try {
    process.kill(-process.pid, 'SIGKILL')
  } finally {
    process.kill(process.pid, 'SIGKILL')
  }
}

/** The worker's end of this pipe closes whenever the worker dies, for whatever reason. */
const LIFELINE = 4

/** Runs on a separate thread: a handler that never yields would not notice that the worker is gone. */
const watchLifeline = (): void => {
  const code = `new (require('node:net').Socket)({ fd: ${LIFELINE}, readable: true, writable: false })
    .on('error', () => {}).on('close', ${killOwnGroup}).resume()`
  new Worker(code, { eval: true, execArgv: [], resourceLimits: { maxOldGenerationSizeMb: 16 } }).unref()
}

const liveAsProcess = (): void => {
  watchLifeline()
  process.on('message', receive)
  process.on('disconnect', killOwnGroup)
  // Ends the process, as Node does without a listener, but tells the worker why.
  process.on('uncaughtException', (thrown) => {
    const message: FromChild = { kind: 'crashed', error: errorText(thrown) }
    process.send?.(message, () => process.exit(1))
  })
}

if (parentPort === null) liveAsProcess()
else parentPort.on('message', receive)
// Load the module early, so that loading does not count against the task's timeout. A load error fails the first run instead.
await import(process.argv[2]!).catch(() => {})
send({ kind: 'ready' })
