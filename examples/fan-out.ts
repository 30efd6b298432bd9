/** A parent with 200 children; the last one to end signals the parent. Run it: node examples/fan-out.ts */
import { connect, defineTask } from 'holdfast'

const CHILDREN = 200

const resizeAll = defineTask<{ album: string }, { resized: number }>('resize_all')
const resize = defineTask<{ n: number; parent: string }, number>('resize')

await using holdfast = await connect(process.argv[2] ?? 'memory:')

const worker = holdfast
  .worker({ concurrency: 50 })
  .handle(resizeAll, async (_input, ctx) => {
    // Keys make the step safe to repeat: a child is created once.
    await ctx.step('children', async () => {
      const items = Array.from({ length: CHILDREN }, (_, n) => ({
        type: resize,
        input: { n, parent: ctx.task.id },
        idempotencyKey: `${ctx.task.id}/${n}`,
      }))
      const results = await ctx.client.submitMany(items)
      for (const result of results) if ('error' in result) throw result.error
    })
    // Parked: 200 children run while the parent holds no slot.
    return ctx.waitFor<{ resized: number }>('all children', { timeout: '1h' })
  })
  .handle(resize, async ({ n, parent }, ctx) => {
    await ctx.step('resize', () => n * n)
    // A child that finds all others finished tells the parent. Several may: the signalId makes it one signal.
    await ctx.step('count', () => void done.add(n))
    if (done.size === CHILDREN)
      await ctx.client.signal(parent, 'all children', { resized: done.size }, { signalId: 'all children' })
    return n
  })

/** Where the children meet: in an application, a row of a table that counts. */
const done = new Set<number>()

worker.start()
const task = await holdfast.submit(resizeAll, { album: 'summer' })
const { resized } = await holdfast.wait(task)
await worker.stop()
console.log(`${resized} children, parent in ${(await holdfast.get(task.id)).attempts} runs`)
