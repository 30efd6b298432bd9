/** Changing what waits: amend and runNow. */
import { describe, expect, it } from 'vitest'
import { connect, defineTask, PermanentError, silentLogger } from '../../../src/index.ts'
import { drain } from '../../../src/testing/index.ts'
import { begin, movesOf, refuses, shown } from '../setup.ts'

describe('amend', () => {
  it('changes the priority, time, expiry, input and tags of a task that waits, and its history says what', async () => {
    const { client, clock } = await begin()
    const { id, createdAt } = await client.submit('work', { n: 1 }, { ttl: '1h', tags: { customer: 'c1' } })
    const task = await client.amend(id, {
      priority: 7,
      delay: '10m',
      ttl: '2h',
      input: { n: 2 },
      tags: { customer: 'c2' },
    })
    expect(shown(task)).toMatchObject({
      status: 'pending',
      priority: 7,
      availableAt: clock.wall() + 600_000,
      expiresAt: clock.wall() + 7_200_000,
      input: { n: 2 },
      tags: { customer: 'c2' },
      createdAt,
      attempts: 0,
      retryCount: 0,
      revision: 2,
    })
    expect((await client.history(id)).at(-1)).toMatchObject({
      move: 'amend',
      to: 'pending',
      changed: ['priority', 'availableAt', 'expiresAt', 'input', 'tags'],
      availableAt: clock.wall() + 600_000,
      expiresAt: clock.wall() + 7_200_000,
    })
    expect(shown(await client.amend(id, { expiresAt: null, tags: null }))).toMatchObject({ expiresAt: null, tags: {} })
  })

  it('writes nothing when the task is so already', async () => {
    const { client } = await begin()
    const { id } = await client.submit('work', { n: 1 }, { priority: 3, tags: { a: 'b' } })
    expect(shown(await client.amend(id, { priority: 3, input: { n: 1 }, tags: { a: 'b' } }))).toMatchObject({
      revision: 1,
    })
    expect(shown(await client.amend(id, {}))).toMatchObject({ revision: 1 })
  })

  it('a claim takes the order that the new priorities say, and the handler gets the new input', async () => {
    const { client } = await begin()
    const first = await client.submit('work', 'first')
    const second = await client.submit('work', 'second')
    await client.amend(second.id, { priority: 1, input: 'second, changed' })
    const seen: unknown[] = []
    await drain(client, { work: (input) => void seen.push(input) }, { concurrency: 1 })
    expect(seen).toEqual(['second, changed', 'first'])
    expect(movesOf(await client.get(first.id))).not.toContain('amend → pending')
  })

  it('bytes take the place of JSON, and JSON that of bytes', async () => {
    const { client } = await begin()
    const { id } = await client.submit('work', { n: 1 })
    expect((await client.amend(id, { input: new Uint8Array([0, 255]) })).input).toEqual(new Uint8Array([0, 255]))
    expect((await client.amend(id, { input: 'text', tags: { a: 'b' } })).input).toBe('text')
  })

  it('is refused for every status but pending, for a task that has departed and for one past its expiry', async () => {
    const { client, clock } = await begin()
    const cannot = (id: string) => refuses('CANNOT_AMEND')(client.amend(id, { priority: 1 }))
    const { id } = await client.submit('work', null)
    const lease = await client.claim(id, { workerId: 'w', leaseTtl: '1h' })
    await cannot(id)
    await lease.fail(new PermanentError('no'))
    await cannot(id)
    await client.archive(id)
    await cannot(id)
    const short = await client.submit('work', null, { ttl: '1s' })
    await clock.advance(1_000)
    await cannot(short.id)
    const other = await connect('memory:', { logger: silentLogger })
    const moved = await client.submit('work', null)
    await client.moveTo(other)
    await refuses('TASK_MOVED', 'moved to memory:')(client.amend(moved.id, { priority: 1 }))
    await refuses('TASK_MOVED')(client.runNow(moved.id))
    expect((await other.amend(moved.id, { priority: 1 })).priority).toBe(1)
    await other.close()
  })

  it('names the option that is wrong, and nothing is written', async () => {
    const { client } = await begin()
    const { id } = await client.submit('work', null)
    await refuses('INVALID_OPTION', 'did you mean priority?')(client.amend(id, { prioritty: 1 } as object))
    await refuses('INVALID_OPTION', 'priority must be')(client.amend(id, { priority: 1_001 }))
    await refuses('INVALID_OPTION', 'at and delay')(client.amend(id, { at: new Date(), delay: '1s' }))
    await refuses('INVALID_OPTION', 'ttl and expiresAt')(client.amend(id, { ttl: '1s', expiresAt: null }))
    await refuses('INVALID_TASK', 'input')(client.amend(id, { input: 1n }))
    expect(await client.get(id)).toMatchObject({ revision: 1 })
  })

  it('with a definition, a new input must pass its schema, and the task must be of its type', async () => {
    const { client } = await begin()
    const schema = {
      '~standard': {
        version: 1 as const,
        vendor: 'test',
        validate: (value: unknown) =>
          typeof value === 'string' ? { value } : { issues: [{ message: 'must be text', path: [] }] },
      },
    }
    const mail = defineTask('mail', { input: schema })
    const { id } = await client.submit(mail, 'a@example.com')
    await refuses('INVALID_TASK', 'must be text')(client.amend(mail, id, { input: 7 as never }))
    expect((await client.amend(mail, id, { input: 'b@example.com' })).input).toBe('b@example.com')
    const other = await client.submit('other', null)
    await refuses('INVALID_OPTION', "is a 'other'")(client.amend(mail, other.id, { input: 'c@example.com' }))
  })

  it('keeps the idempotency key of the first submission', async () => {
    const { client } = await begin()
    const { id } = await client.submit('work', { n: 1 }, { idempotencyKey: 'k' })
    await client.amend(id, { input: { n: 2 } })
    expect(await client.submit('work', { n: 1 }, { idempotencyKey: 'k' })).toMatchObject({ id, deduplicated: true })
    await refuses('IDEMPOTENCY_CONFLICT')(client.submit('work', { n: 2 }, { idempotencyKey: 'k' }))
  })
})

describe('runNow', () => {
  it('makes a task due that waits for its time, and leaves one alone that is due', async () => {
    const { client, clock } = await begin()
    const { id } = await client.submit('work', null, { delay: '1d' })
    expect(shown(await client.runNow(id))).toMatchObject({ availableAt: clock.wall(), revision: 2 })
    expect(shown(await client.runNow(id))).toMatchObject({ revision: 2 })
    expect((await client.claimNext({ workerId: 'w' }))?.task.id).toBe(id)
    await refuses('CANNOT_AMEND', 'running')(client.runNow(id))
  })

  it('ends the backoff of a task that failed, and costs no retry', async () => {
    const { client } = await begin()
    const { id } = await client.submit('work', null, { retryPolicy: { base: '1h' } })
    await (await client.claim(id, { workerId: 'w' })).fail(new Error('away'))
    expect(shown(await client.runNow(id))).toMatchObject({ retryCount: 1, attempts: 1 })
    expect((await client.claimNext({ workerId: 'w' }))?.fence).toBe(2)
  })
})
