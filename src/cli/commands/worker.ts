/** `holdfast worker MODULE`: a worker with the handlers of a module, until it is told to stop. */
import { hostname } from 'node:os'
import { HoldfastError, type Task, type Worker } from '../../index.ts'
import { EXIT } from '../exit-codes.ts'
import { loadModule, registerHandlers, workerOf } from '../handlers.ts'
import { happened } from '../history-line.ts'
import { integer } from '../input.ts'
import { out, paint, printable, type Style } from '../render.ts'
import { type GlobalOptions, withClient } from '../session.ts'
import { limitYoungGeneration } from '../young-generation.ts'

interface Options extends GlobalOptions {
  readonly concurrency?: string
  readonly queue?: readonly string[]
  readonly drain?: boolean
  readonly watch?: boolean
}

export const run = async ([path]: readonly string[], options: Options): Promise<number> => {
  const watching = options.watch ? await import('../watching.ts') : null
  if (watching !== null && !watching.isWatched()) return watching.watch(path!)
  watching?.tellLoaded()
  limitYoungGeneration()
  const exported = await loadModule(path!)
  const own = workerOf(exported)
  if (own !== null) {
    watching?.stopWhenAlone(own)
    return runOwn(own, path!, options)
  }
  await withClient(options, { create: true, name: `${hostname()}/${process.pid}` }, async (client) => {
    let ended = 0
    const say = sayer(options)
    const queues = options.queue ?? ['default']
    const worker = client.worker({
      queues,
      ...(options.concurrency === undefined ? null : { concurrency: integer(options.concurrency) }),
      ...(watching === null ? null : { stopTimeout: watching.STOP_TIMEOUT }),
      hooks: {
        onStart: () =>
          say(`worker ${worker.id} serves ${queues.join(', ')} on ${client.address}`, {
            event: 'started',
            workerId: worker.id,
            queues,
            address: client.address,
          }),
        onTaskEnd: (task, error) => {
          ended++
          say(endedLine(task, error), endedFacts(task, error))
        },
      },
    })
    await registerHandlers(path!, exported, worker)
    watching?.stopWhenAlone(worker)
    await (options.drain ? drain(worker) : worker.run())
    say(`worker stopped, ${ended} ${ended === 1 ? 'attempt' : 'attempts'} ended`, {
      event: 'stopped',
      workerId: worker.id,
      ended,
    })
  })
  return leave()
}

/** A handler that would not stop must not keep the process: its task lapses and runs elsewhere. */
const leave = (): number => {
  process.stdout.write('', () => process.exit(EXIT.ok))
  return EXIT.ok
}

/** The module has made a worker itself, on a store of its choice. */
const runOwn = async (worker: Worker, path: string, options: Options): Promise<number> => {
  for (const name of ['url', 'queue', 'concurrency'] as const) {
    if (options[name] === undefined) continue
    const why = `MODULE '${path}' exports a worker, which has its own store, queues and concurrency: leave --${name} out`
    throw new HoldfastError('INVALID_OPTION', why, { field: `--${name}` })
  }
  const say = sayer(options)
  say(`worker ${worker.id} of ${path}`, { event: 'started', workerId: worker.id })
  await (options.drain ? drain(worker) : worker.run())
  say('worker stopped', { event: 'stopped', workerId: worker.id })
  return leave()
}

/** Lines for people, or one object a line. */
const sayer = ({ json }: Options): ((text: string, facts: Facts) => void) =>
  json ? (_, facts) => out(JSON.stringify(facts)) : (text) => out(text)

type Facts = Readonly<Record<string, unknown>>

/** Runs what is ready; a signal ends it sooner. */
const drain = async (worker: Worker): Promise<void> => {
  const stopped = Promise.withResolvers<void>()
  const stop = (): void => {
    worker.stop().then(stopped.resolve, stopped.reject)
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, stop)
  await Promise.race([worker.drain(), stopped.promise])
}

const MARKS: Readonly<Record<string, readonly [mark: string, style: Style]>> = {
  completed: ['✓', 'green'],
  failed: ['✗', 'red'],
  cancelled: ['■', 'magenta'],
  pending: ['↻', 'yellow'],
}

const endedLine = (task: Task, error: HoldfastError | null): string => {
  const { id, type, status, attempts } = task
  const [mark, style] = error === null ? (MARKS[status] ?? ['?', 'dim']) : (['!', 'red'] as const)
  const entry = task.history.at(-1)
  const how =
    error !== null
      ? `${error.code}: ${error.message}`
      : entry === undefined || status === 'completed'
        ? ''
        : happened(entry)
  const took = error === null && task.startedAt !== null ? `${task.updatedAt - task.startedAt}ms` : ''
  const facts = [took, attempts > 1 ? `attempt ${attempts}` : '', printable(how)].filter((fact) => fact !== '')
  return `${paint(style, `${mark} ${(error === null ? status : 'not written').padEnd(9)}`)} ${type}  ${paint('dim', id)}  ${facts.join(', ')}`
}

const endedFacts = (task: Task, error: HoldfastError | null): Facts => {
  const move = task.history.at(-1)?.move ?? null
  return {
    event: 'ended',
    move: error === null ? move : null,
    status: task.status,
    task,
    ...(error === null ? null : { error }),
  }
}
