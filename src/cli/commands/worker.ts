/** `holdfast worker MODULE`: runs a worker with the handlers of a module until a signal stops it. */
import { hostname } from 'node:os'
import { type DrainOptions, HoldfastError, isHoldfastError, type Task, type Worker } from '../../index.ts'
import { report } from '../output/errors.ts'
import { EXIT, type ExitCode } from '../output/exit-codes.ts'
import { happened } from '../output/history-line.ts'
import { out, paint, printable, type Style } from '../output/render.ts'
import { given, integer, retention } from '../program/input.ts'
import { type GlobalOptions, withClient } from '../program/session.ts'
import { loadModule, registerHandlers, workerOf } from './shared/handlers.ts'
import { limitYoungGeneration } from './shared/young-generation.ts'

interface Options extends GlobalOptions {
  readonly concurrency?: string
  readonly queue?: readonly string[]
  readonly drain?: boolean
  readonly for?: string
  readonly schedules?: boolean
  readonly watch?: boolean
  readonly leaseTtl?: string
  readonly pollInterval?: string
  readonly stopTimeout?: string
  readonly retention?: readonly string[]
  readonly stuckAfter?: string
  /** `--no-exit-when-stuck` makes it false. */
  readonly exitWhenStuck: boolean
}

export const run = async (args: readonly string[], options: Options): Promise<number> => {
  try {
    return await work(args, options)
  } catch (error) {
    if (!isHoldfastError(error, 'WORKER_STUCK')) throw error
    // A stuck handler would keep the process alive, but its supervisor waits for the exit.
    return leave(report(error, options.json ?? false))
  }
}

const work = async ([path]: readonly string[], options: Options): Promise<number> => {
  for (const name of ['for', 'schedules'] as const)
    if (options[name] !== undefined && !options.drain)
      throw new HoldfastError('INVALID_OPTION', `--${name} needs --drain`, { field: `--${name}` })
  const watching = options.watch ? await import('./shared/watch.ts') : null
  if (watching !== null && !watching.isWatched()) return watching.watch(path!)
  watching?.tellLoaded()
  limitYoungGeneration()
  const exported = await loadModule(path!)
  const own = workerOf(exported)
  if (own !== null) {
    watching?.stopWhenAlone(own)
    return runOwn(own, path!, options)
  }
  const open = {
    create: true,
    tellsRuns: true,
    name: `${hostname()}/${process.pid}`,
    ...given('retention', options.retention, retention),
  }
  await withClient(options, open, async (client) => {
    let ended = 0
    const say = sayer(options)
    const queues = options.queue ?? ['default']
    const worker = client.worker({
      queues,
      ...given('concurrency', options.concurrency, integer),
      ...given('leaseTtl', options.leaseTtl),
      ...given('pollInterval', options.pollInterval),
      ...given('stopTimeout', options.stopTimeout ?? watching?.STOP_TIMEOUT),
      ...given('stuckAfter', options.stuckAfter),
      exitWhenStuck: options.exitWhenStuck,
      hooks: {
        onStart: () =>
          say(`worker ${worker.id} serves ${queues.join(', ')} on ${client.address}`, {
            event: 'started',
            workerId: worker.id,
            queues,
            address: client.address,
          }),
        onTaskEnd: (task, thrown) => {
          ended++
          const error = unwritten(task, thrown)
          say(endedLine(task, error), endedFacts(task, error))
        },
        onStuck: (task) =>
          say(`${paint('red', '! stuck    ')} ${task.type}  ${paint('dim', task.id)}  attempt ${task.attempts}`, {
            event: 'stuck',
            task,
          }),
      },
    })
    await registerHandlers(path!, exported, worker)
    watching?.stopWhenAlone(worker)
    await (options.drain ? drain(worker, options) : worker.run())
    say(`worker stopped, ${ended} ${ended === 1 ? 'attempt' : 'attempts'} ended`, {
      event: 'stopped',
      workerId: worker.id,
      ended,
    })
  })
  return leave()
}

/** A handler that does not stop must not keep the process alive: its lease lapses and its task runs elsewhere. */
const leave = (code: ExitCode = EXIT.ok): number => {
  process.stdout.write('', () => process.exit(code))
  return code
}

/** Options that a worker of its own has already. */
const OF_A_WORKER = [
  ['url', '--url'],
  ['queue', '--queue'],
  ['concurrency', '--concurrency'],
  ['leaseTtl', '--lease-ttl'],
  ['pollInterval', '--poll-interval'],
  ['stopTimeout', '--stop-timeout'],
  ['retention', '--retention'],
  ['stuckAfter', '--stuck-after'],
] as const

/** The module exports its own worker, on a store of its choice. */
const runOwn = async (worker: Worker, path: string, options: Options): Promise<number> => {
  for (const [name, flag] of OF_A_WORKER) {
    if (options[name] === undefined) continue
    const why = `MODULE '${path}' exports a worker, which has its own store and options: omit ${flag}`
    throw new HoldfastError('INVALID_OPTION', why, { field: flag })
  }
  const say = sayer(options)
  const ended = options.drain ? drain(worker, options) : worker.run()
  say(`worker ${worker.id} of ${path}`, { event: 'started', workerId: worker.id })
  await ended
  say('worker stopped', { event: 'stopped', workerId: worker.id })
  return leave()
}

/** Plain lines, or one object per line. */
const sayer = ({ json }: Options): ((text: string, facts: Facts) => void) =>
  json ? (_, facts) => out(JSON.stringify(facts)) : (text) => out(text)

type Facts = Readonly<Record<string, unknown>>

const drainOptions = (options: Options): DrainOptions => ({
  ...given('for', options.for),
  ...given('schedules', options.schedules),
})

/** Runs the ready tasks; a signal ends it earlier, a second one at once. */
const drain = async (worker: Worker, options: Options): Promise<void> => {
  const stopped = Promise.withResolvers<void>()
  let isAsked = false
  const stop = (): void => {
    worker.stop(isAsked ? { timeout: 0 } : {}).then(stopped.resolve, stopped.reject)
    isAsked = true
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, stop)
  await Promise.race([worker.drain(drainOptions(options)), stopped.promise])
}

const MARKS: Readonly<Record<string, readonly [mark: string, style: Style]>> = {
  completed: ['✓', 'green'],
  failed: ['✗', 'red'],
  cancelled: ['■', 'magenta'],
  pending: ['↻', 'yellow'],
}

/** The history has the handler's error; an error here means that the outcome was not written. */
const unwritten = (task: Task, error: Error | null): HoldfastError | null =>
  task.status === 'running' && error instanceof HoldfastError ? error : null

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
