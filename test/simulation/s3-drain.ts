/**
 * How fast workers drain a queue in a bucket, in virtual time: what the requests and their order allow, whatever the processors and the
 * load of this machine.
 */
import type { TaskRecord } from '../../src/core/task.ts'
import type { Program } from './bundle.ts'
import { Host, Machine } from './host.ts'
import { Kernel } from './kernel.ts'
import { Marks } from './marks.ts'
import { s3 } from './s3.ts'
import { drawSettings, FAULTS, type Fault, type Settings } from './settings.ts'
import { Trace } from './trace.ts'
import { Wire } from './wire.ts'

export interface DrainSettings {
  readonly workers: number
  readonly tasks: number
  readonly concurrency: number
  readonly seed: number
}

export interface Drained {
  /** Tasks a second, from the start of the workers to the last end. */
  readonly perSecond: number
  /** Of each worker. */
  readonly runs: readonly number[]
  readonly requestsPerTask: number
  readonly tasks: readonly TaskRecord[]
}

/** To the server and back, in milliseconds. */
const LATENCY = 30
const BATCH = 1_000
/** Of virtual time. */
const DEADLINE = 600_000
const SILENT = { debug() {}, info() {}, warn() {}, error() {} }

const settingsOf = (kernel: Kernel): Settings => ({
  ...drawSettings(kernel, 's3', { without: Object.keys(FAULTS) as Fault[] }),
  latency: [LATENCY / 2, LATENCY / 2],
  deadline: 10_000,
})

/** All tasks wait before the workers begin, and none may be retried. */
export const drain = async (program: Program, order: DrainSettings): Promise<Drained> => {
  const kernel = new Kernel(order.seed)
  const settings = settingsOf(kernel)
  const marks = new Marks()
  const wire = new Wire(kernel, settings, marks, new Trace(kernel, false))
  const machine = new Machine(kernel)
  const store = s3({ kernel, settings, wire, marks, machine, checker: { saw() {} }, hasWholePages: true })
  const hosts: Host[] = []

  const open = async (name: string) => {
    const host = new Host(kernel, program, name, machine)
    hosts.push(host)
    const client = await host.enter(async () => host.holdfast.connect(await store.open(host), { logger: SILENT, name }))
    return { host, client }
  }

  const submit = async (): Promise<void> => {
    const { host, client } = await open('producer')
    const task = (input: number) => ({ type: 'a', input, maxRetries: 0 })
    for (let at = 0; at < order.tasks; at += BATCH) {
      const some = Array.from({ length: Math.min(BATCH, order.tasks - at) }, (_, n) => task(at + n))
      await host.enter(() => client.submitMany(some))
    }
    await host.enter(() => client.close())
  }

  const story = async (): Promise<Drained> => {
    const first = new Host(kernel, program, 'first', machine)
    await first.enter(() => store.prepare(first))
    await submit()
    const workers = await Promise.all(Array.from({ length: order.workers }, (_, n) => open(`worker-${n + 1}`)))
    const [since, sent] = [kernel.now, wire.calls]
    const runs = workers.map(() => 0)
    let ended = 0
    const all = Promise.withResolvers<void>()
    const onTaskEnd = (): void => {
      if (++ended === order.tasks) all.resolve()
    }
    for (const [n, { host, client }] of workers.entries())
      host.enter(() =>
        client
          .worker({ concurrency: order.concurrency, hooks: { onTaskEnd } })
          .handle('a', () => void runs[n]!++)
          .start(),
      )
    await Promise.race([all.promise, kernel.sleep(DEADLINE)])
    const perSecond = Math.round((ended / (kernel.now - since)) * 1_000)
    return { perSecond, runs, requestsPerTask: (wire.calls - sent) / order.tasks, tasks: await store.all() }
  }

  let isOver = false
  const told = story().finally(() => {
    isOver = true
    for (const host of hosts) host.kill()
  })
  await Promise.race([told, kernel.run(2 * DEADLINE, () => isOver)])
  return told
}
