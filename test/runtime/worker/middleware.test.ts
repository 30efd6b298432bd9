/** Middleware around each run: worker.use. */
import { describe, expect, it } from 'vitest'
import { PermanentError, type TaskContext } from '../../../src/index.ts'
import { begin, refuses } from '../setup.ts'

const ran = async (
  prepare: (worker: ReturnType<Awaited<ReturnType<typeof begin>>['client']['worker']>, said: string[]) => void,
) => {
  const { client, clock } = await begin()
  const said: string[] = []
  const worker = client.worker()
  prepare(worker, said)
  worker.start()
  const { id } = await client.submit('work', { n: 1 }, { maxRetries: 0 })
  await clock.settle()
  await worker.stop()
  return { task: await client.get(id), said }
}

describe('middleware', () => {
  it('runs around each handler in the order of use, also of handlers that were added before', async () => {
    const { task, said } = await ran((worker, said) => {
      const around = (name: string) => async (ctx: TaskContext, next: () => Promise<unknown>) => {
        said.push(`${name} before ${ctx.task.type}`)
        const output = await next()
        said.push(`${name} after`)
        return output
      }
      worker
        .use(around('outer'))
        .handle('work', () => {
          said.push('handler')
          return 7
        })
        .use(around('inner'))
    })
    expect(said).toEqual(['outer before work', 'inner before work', 'handler', 'inner after', 'outer after'])
    expect(task).toMatchObject({ status: 'completed', output: 7 })
  })

  it('may change the output, or end the run without the handler', async () => {
    const { task, said } = await ran((worker, said) => {
      worker.use(async (_, next) => ({ wrapped: await next() })).use(() => 'cached')
      worker.handle('work', () => void said.push('handler'))
    })
    expect(said).toEqual([])
    expect(task.output).toEqual({ wrapped: 'cached' })
  })

  it('sees what the handler throws, and what it throws itself fails the run', async () => {
    const { task, said } = await ran((worker, said) => {
      worker.use(async (_, next) => {
        try {
          return await next()
        } catch (error) {
          said.push((error as Error).message)
          throw new PermanentError('wrapped', { cause: error })
        }
      })
      worker.handle('work', () => {
        throw new Error('no answer')
      })
    })
    expect(said).toEqual(['no answer'])
    expect(task).toMatchObject({ status: 'failed', lastError: { message: 'wrapped', cause: { message: 'no answer' } } })
  })

  it('passes a reschedule on, whether it is returned or thrown', async () => {
    const { task } = await ran((worker) => {
      worker.use((_, next) => next()).handle('work', (_, ctx) => ctx.reschedule('1h'))
    })
    expect(task).toMatchObject({ status: 'pending', rescheduleCount: 1 })
  })

  it('that calls next twice fails the run, and the handler runs once', async () => {
    const { task, said } = await ran((worker, said) => {
      worker.use(async (_, next) => {
        await next()
        return next()
      })
      worker.handle('work', () => void said.push('handler'))
    })
    expect(said).toEqual(['handler'])
    expect(task.lastError?.message).toContain('called next twice')
  })

  it('that is no function is refused', async () => {
    const { client } = await begin()
    await refuses(
      'INVALID_OPTION',
      'middleware',
    )(Promise.resolve().then(() => client.worker().use('no' as unknown as () => void)))
  })
})
