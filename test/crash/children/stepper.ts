/** Runs a task of ten steps and a sleep, and dies of SIGKILL right after its n-th write reached the store. */
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Store } from '../../../src/store/store.ts'
import { STEPS } from '../step-campaign.ts'
import { open, planOf, say } from './child.ts'

export interface StepperPlan {
  readonly file: string
  readonly folder: string
  readonly queue: string
  readonly leaseTtl: string
  /** 0: it lives. */
  readonly writes: number
  /** A bug: claims come without the mark that the task has a journal. */
  readonly isForgetful?: boolean
}

const { file, folder, queue, leaseTtl, writes, isForgetful = false } = planOf<StepperPlan>()
let left = writes

const written = (): void => {
  if (--left === 0) process.kill(process.pid, 'SIGKILL')
}

/** Counts what changes the store. */
const dying = (store: Store): Store =>
  new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value
      const bound = value.bind(target)
      if (name === 'commit')
        return async (...args: unknown[]) => {
          const committed = (await bound(...args)) as readonly string[]
          if (committed.includes('written')) written()
          return committed
        }
      if (name === 'claim')
        return async (...args: unknown[]) => {
          const found = await bound(...args)
          if (found.leased.length > 0) written()
          if (!isForgetful) return found
          return { ...found, leased: found.leased.map((task: object) => ({ ...task, hasJournal: false })) }
        }
      return bound
    },
  })

const client = await open(file, 'none', dying)
const worker = client.worker({ queues: [queue], leaseTtl, pollInterval: '100ms', concurrency: 1 })
worker.handle('ten', async (_, ctx) => {
  const results: unknown[] = []
  for (let i = 0; i < STEPS; i++) {
    if (i === STEPS / 2) await ctx.sleep('nap', '10ms')
    results.push(
      await ctx.step(`step ${i}`, ({ key }) => {
        // An effect outside of the store.
        appendFileSync(join(folder, 'effects'), `${key} ${process.pid}\n`)
        return { i, pid: process.pid, text: 'x'.repeat(i === 3 ? 5_000 : 10) }
      }),
    )
  }
  return results
})
say('ready')
await worker.run()
await client.close()
