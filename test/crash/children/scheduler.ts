/** A scheduler that now and then kills itself in the middle of a slot: before its tasks are submitted, or right after. */
import type { Store } from '../../../src/store/store.ts'
import type { Plant } from '../planted.ts'
import { chance } from '../seed.ts'
import { open, planOf, say } from './child.ts'

export interface SchedulerPlan {
  readonly file: string
  readonly seed: number
  /** Of a hundred submits of slots, so many are its last. */
  readonly deaths: number
  /** Where it dies; left out: sometimes here, sometimes there. */
  readonly dies?: 'before' | 'after'
  readonly plant?: Plant
}

const { file, seed, deaths, dies, plant = 'none' } = planOf<SchedulerPlan>()
const { between } = chance(seed)

/** The line is out before the process is gone: a pipe keeps what was written to it. */
const die = (where: string, slots: number): Promise<never> => {
  say('dies', { where, slots })
  process.kill(process.pid, 'SIGKILL')
  return new Promise(() => {})
}

const mortal = (store: Store): Store =>
  new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target)
      if (name !== 'insert') return typeof value === 'function' ? value.bind(target) : value
      return async (...args: Parameters<Store['insert']>) => {
        const last = between(1, 100) <= deaths
        const where = dies ?? (between(0, 3) === 0 ? 'before' : 'after')
        if (last && where === 'before') await die(where, args[0].length)
        const inserted = await target.insert(...args)
        if (last) await die(where, args[0].length)
        return inserted
      }
    },
  })

const client = await open(file, plant, mortal)
const worker = client.worker({ queues: ['elsewhere'] }).handle('nothing', () => null)
say('ready')
await worker.run()
await client.close()
say('stopped')
