/** A RetryableError that names its delay. */
import { describe, expect, it } from 'vitest'
import { PermanentError, RetryableError } from '../../../src/index.ts'
import { begin, refuses } from '../setup.ts'

const failedWith = async (error: unknown, options = {}) => {
  const { client, clock } = await begin()
  const { id } = await client.submit('work', null, { retryPolicy: { base: '1h', max: '2h' }, ...options })
  const worker = client.worker().handle('work', () => {
    throw error
  })
  worker.start()
  await clock.settle()
  const task = await client.get(id)
  await worker.stop()
  return { task, wait: task.availableAt - clock.wall() }
}

describe('a RetryableError with a delay', () => {
  it('replaces the backoff, and costs a retry like any other', async () => {
    const { task, wait } = await failedWith(new RetryableError('busy', { delay: '90s' }))
    expect(wait).toBe(90_000)
    expect(task).toMatchObject({ status: 'pending', retryCount: 1, lastError: { name: 'RetryableError' } })
  })

  it('of 0 retries at once', async () => {
    const { task } = await failedWith(new RetryableError('again', { delay: 0 }), { maxRetries: 2 })
    expect(task).toMatchObject({ status: 'failed', attempts: 3 })
  })

  it('does so from another copy of the package, too, cut to a century', async () => {
    const foreign = Object.assign(new Error('busy'), { name: 'RetryableError', delay: 1e300 })
    expect((await failedWith(foreign)).wait).toBe(36_525 * 86_400_000)
    const bad = Object.assign(new Error('busy'), { name: 'RetryableError', delay: Number.NaN })
    expect((await failedWith(bad)).task).toMatchObject({ status: 'pending', retryCount: 1 })
  })

  it('without retries left fails the task', async () => {
    expect((await failedWith(new RetryableError('busy', { delay: '1s' }), { maxRetries: 0 })).task.status).toBe(
      'failed',
    )
  })

  it('works for a lease held by hand, and keeps its cause', async () => {
    const { client, clock } = await begin()
    const { id } = await client.submit('work', null)
    const lease = await client.claim(id, { workerId: 'w' })
    const task = await lease.fail(new RetryableError('busy', { delay: '5m', cause: new Error('429') }))
    expect(task.availableAt - clock.wall()).toBe(300_000)
    expect(task.lastError?.cause?.message).toBe('429')
  })

  it('of another error is no delay, and one that is no duration is refused where it is made', async () => {
    const { wait } = await failedWith(Object.assign(new Error('busy'), { delay: 5 }))
    expect(wait).toBeGreaterThan(5)
    expect((await failedWith(Object.assign(new PermanentError('no'), { delay: 5 }))).task.status).toBe('failed')
    await refuses('INVALID_DURATION')(
      Promise.resolve().then(() => new RetryableError('busy', { delay: 'soon' as '1s' })),
    )
  })
})
