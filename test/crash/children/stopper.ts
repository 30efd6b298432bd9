/** Stops itself, once per task, at the point that the task names; runs it to its end when it comes round again. */
import { openSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { AbortedError, TaskContext } from '../../../src/index.ts'
import type { Store } from '../../../src/store/store.ts'
import type { Plant } from '../planted.ts'
import { openWitness } from '../witness.ts'
import { open, planOf, say } from './child.ts'

export interface StopperPlan {
  readonly file: string
  readonly folder: string
  readonly leaseTtl: string
  readonly plant?: Plant
}

/** `handler`: in the middle of it. `complete`: the effect is there and the completion decided, but not sent. */
export interface StopperInput {
  readonly at: 'handler' | 'complete'
}

const { file, folder, leaseTtl, plant = 'none' } = planOf<StopperPlan>()
const witness = openWitness(folder)
const lock = new DatabaseSync(file, { timeout: 5_000 })
/** Fences of the runs that are to stop before their completion is sent, by task. */
const toStop = new Map<string, number>()

/** True for one run of each task, whichever process has it. */
const isFirst = (task: string): boolean => {
  try {
    openSync(join(folder, `${task}.stopped`), 'wx')
    return true
  } catch {
    return false
  }
}

/** Asked to stop again, because the store's thread was stopped while it had the file's write lock. */
const isAskedAgain = (task: string): boolean => {
  try {
    unlinkSync(join(folder, `${task}.again`))
    return true
  } catch {
    return false
  }
}

const stopHere = (task: string, fence: number): void => {
  witness('stop', { task, fence })
  do {
    // Having the write lock for a moment shows that this process's store thread does not: stopped with it, it would stop
    // everybody else too.
    lock.exec('begin immediate')
    say('stopping', { task, fence })
    lock.exec('rollback')
    process.kill(process.pid, 'SIGSTOP')
    // The stop may reach another thread of the process first: not a step further until it has reached this one.
    for (
      let last = performance.now(), end = last + 20, now = last;
      now < end && now - last < 10;
      now = performance.now()
    )
      last = now
  } while (isAskedAgain(task))
  witness('go-on', { task, fence })
}

const stopBeforeComplete = (store: Store): Store =>
  new Proxy(store, {
    get: (target, name) => {
      const value = Reflect.get(target, name, target) as unknown
      if (name !== 'commit') return typeof value === 'function' ? value.bind(target) : value
      return (changes: Parameters<Store['commit']>[0]) => {
        for (const { id, entry } of changes) {
          const fence = toStop.get(id)
          if (entry.move === 'complete' && toStop.delete(id)) stopHere(id, fence!)
        }
        return target.commit(changes)
      }
    },
  })

const aborted = (signal: AbortSignal): Promise<string> =>
  new Promise((done) => {
    const tell = (): void => done((signal.reason as AbortedError).kind)
    if (signal.aborted) return tell()
    signal.addEventListener('abort', tell, { once: true })
    setTimeout(() => done('never'), 5_000).unref()
  })

const run = async ({ at }: StopperInput, ctx: TaskContext): Promise<unknown> => {
  const facts = { task: ctx.task.id, fence: ctx.fence }
  witness('start', facts)
  if (isFirst(ctx.task.id)) {
    if (at === 'handler') {
      stopHere(ctx.task.id, ctx.fence)
      witness('aborted', { ...facts, reason: await aborted(ctx.signal) })
    } else toStop.set(ctx.task.id, ctx.fence)
  }
  witness('end', facts)
  return { fence: ctx.fence, pid: process.pid }
}

const client = await open(file, plant, stopBeforeComplete)
const hooks = {
  onTaskEnd: (task: { id: string; attempts: number }, error: { code?: unknown } | null) =>
    say('ended', { task: task.id, fence: task.attempts, code: error?.code ?? 'written' }),
}
const worker = client.worker({ concurrency: 1, leaseTtl, hooks })
worker.handle('work', (input, ctx) => run(input as StopperInput, ctx))
say('ready')
await worker.run()
await client.close()
