import { describe, expect, it } from 'vitest'
import { begin } from '../setup.ts'

describe('a queue that is used no more', () => {
  it('is listed until it is forgotten, and forgetting it twice is no error', async () => {
    const { client } = await begin()
    const { id } = await client.submit('work', 1, { queue: 'once' })
    await client.cancel(id)
    await client.delete(id)
    expect((await client.stats()).map(({ queue }) => queue)).toEqual(['once'])
    for (let time = 0; time < 2; time++) await client.queue('once').forget()
    expect(await client.stats()).toEqual([])
  })

  it('is listed again when it is used again, and its tasks were there all the time', async () => {
    const { client, clock } = await begin()
    const { id } = await client.submit('work', 1, { queue: 'mail' })
    await client.queue('mail').forget()
    expect((await client.get(id)).status).toBe('pending')
    await client.submit('work', 2, { queue: 'mail' })
    expect((await client.stats()).map(({ queue }) => queue)).toEqual(['mail'])
    const ran: unknown[] = []
    client
      .worker({ queues: ['mail'] })
      .handle('work', (input) => void ran.push(input))
      .start()
    await clock.settle()
    expect(ran).toEqual([1, 2])
  })
})
