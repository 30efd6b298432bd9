/** The layout of the bucket, which `nats kv` can read. */
import { jetstreamManager } from '@nats-io/jetstream'
import { connect as connectNats } from '@nats-io/transport-node'
import { expect, onTestFinished, test } from 'vitest'
import { begin, onNats } from './setup.ts'

const reader = async (url: string, bucket: string) => {
  const nc = await connectNats({ servers: url })
  onTestFinished(() => nc.close())
  const jsm = await jetstreamManager(nc)
  const stream = `KV_${bucket}`
  return {
    config: async () => (await jsm.streams.info(stream)).config,
    keys: async (filter: string): Promise<string[]> => {
      const { state } = await jsm.streams.info(stream, { subjects_filter: `$KV.${bucket}.${filter}` })
      return Object.keys(state.subjects ?? {}).map((subject) => subject.slice(`$KV.${bucket}.`.length))
    },
    last: (key: string) => jsm.streams.getMessage(stream, { last_by_subj: `$KV.${bucket}.${key}` }),
  }
}

onNats('a bucket', (url) => {
  test('keeps tasks for ever, in files, one value a key, read from its leader [T03]', async () => {
    const { bucket, connect } = begin(url)
    await connect()
    const { config } = await reader(url, bucket)
    expect(await config()).toMatchObject({
      max_age: 0,
      storage: 'file',
      discard: 'new',
      max_msgs_per_subject: 1,
      allow_direct: false,
    })
  })

  test('has a key for each task and one for each idempotency key, with JSON in them [E08] [T05]', async () => {
    const { bucket, connect } = begin(url)
    const client = await connect()
    const { id } = await client.submit('work', { a: 1 }, { idempotencyKey: 'once' })
    const { keys, last } = await reader(url, bucket)
    const [key] = await keys('tasks.>')
    expect(key).toBe(`tasks.${id.slice(-2)}.${id}=2ejson`)
    expect((await last(key!))!.json()).toMatchObject({ task: { id, status: 'pending' } })
    const [idempotency] = await keys('keys.>')
    expect((await last(idempotency!))!.json()).toMatchObject({ record: { key: 'once', taskId: id } })
    await client.cancel(id)
    await client.delete(id)
    // What is left of them for a while is a mark of the deletion, without the task.
    expect(JSON.parse((await last(key!))?.string() || '{}')).not.toHaveProperty('task')
    await expect(client.get(id)).rejects.toMatchObject({ code: 'TASK_NOT_FOUND' })
    await expect(client.getByIdempotencyKey('once')).rejects.toMatchObject({ code: 'TASK_NOT_FOUND' })
    expect((await keys('tasks.>')).filter((one) => one !== key)).toEqual([])
  })

  test('loses the parts of a value that is too large for one message together with its task', async () => {
    const { bucket, connect } = begin(url)
    const client = await connect()
    const { id } = await client.submit('work', 'x'.repeat(1_048_000))
    const { keys } = await reader(url, bucket)
    expect((await keys('large.>')).length).toBeGreaterThan(2)
    await client.cancel(id)
    await client.delete(id)
    await expect.poll(() => keys('large.>'), { timeout: 20_000 }).toEqual([])
  })

  test('sees each move as one write of one key, from the revision that was read [T04]', async () => {
    const { bucket, connect } = begin(url)
    const client = await connect()
    const { id } = await client.submit('work', null)
    const { last } = await reader(url, bucket)
    const key = `tasks.${id.slice(-2)}.${id}=2ejson`
    const revisions = [(await last(key))!.seq]
    const lease = await client.claim(id, { workerId: 'me' })
    revisions.push((await last(key))!.seq)
    await lease.complete('done')
    revisions.push((await last(key))!.seq)
    expect(new Set(revisions).size).toBe(3)
    expect((await last(key))!.json()).toMatchObject({ task: { status: 'completed', revision: 3 } })
  })
})
