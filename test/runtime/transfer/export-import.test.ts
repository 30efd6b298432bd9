/** Out of one store and into another as lines of JSON. */
import { describe, expect, it } from 'vitest'
import { type Client, HoldfastError } from '../../../src/index.ts'
import { lossy } from '../../../src/testing/lossy-store.ts'
import { begin, keptOpen, refuses } from '../setup.ts'

const linesOf = async (client: Client, query = {}): Promise<string[]> => {
  const lines: string[] = []
  for await (const line of client.export(query)) lines.push(line)
  return lines
}
const opened = (lines: readonly string[]) =>
  async function* () {
    yield* lines
  }

/** A store with something of every kind in it. */
const furnished = async () => {
  const bench = await begin()
  const { client } = bench
  const waiting = await client.submit('a', { n: 1 }, { idempotencyKey: 'k', tags: { colour: 'red' } })
  const done = await client.submit('a', 2, { queue: 'mail' })
  await (await client.claim(done.id, { workerId: 'w' })).complete(null)
  const running = await client.submit('b', 3)
  await client.claim(running.id, { workerId: 'w', leaseTtl: '1h' })
  const archived = await client.submit('b', new Uint8Array([0, 255]))
  await client.cancel(archived.id)
  await client.archive(archived.id)
  const pruned = await client.submit('c', 4, { idempotencyKey: 'orphan' })
  await client.markExpired(pruned.id)
  await client.prune({ olderThan: 0, status: 'expired' })
  await client.queue('mail').pause({ reason: 'on purpose' })
  await client.schedules.create({ id: 'nightly', type: 'a', input: null, cron: '0 3 * * *', timezone: 'Europe/Berlin' })
  await client.schedules.delete((await client.schedules.create({ id: 'x', type: 'a', input: 1, every: '1s' })).id)
  return { ...bench, waiting, done, running, archived }
}

describe('an export', () => {
  it('has a first line that says what it is, and a last one that says how much it was', async () => {
    const { client } = await furnished()
    const lines = (await linesOf(client)).map((line) => JSON.parse(line))
    expect(lines[0]).toMatchObject({ holdfast: 'export', version: 1, source: 'memory:', filtered: false })
    expect(lines.at(-1)).toEqual({ end: { queues: 2, pauses: 1, tasks: 4, keys: 1, schedules: 1 } })
    expect(lines.length).toBe(2 + 2 + 1 + 4 + 1 + 1)
  })

  it('of tasks that are chosen has these and nothing else', async () => {
    const { client, waiting } = await furnished()
    const lines = (await linesOf(client, { type: 'a', status: 'pending' })).map((line) => JSON.parse(line))
    expect(lines.map((line) => Object.keys(line)[0])).toEqual(['holdfast', 'task', 'end'])
    expect(lines[0].filtered).toBe(true)
    expect(lines[1]).toMatchObject({ task: { id: waiting.id, history: [{ move: 'submit' }] }, key: { key: 'k' } })
  })
})

describe('an import', () => {
  it('brings the slots that a schedule has fired', async () => {
    const { client, clock, passing } = await begin()
    await client.schedules.create({ id: 'tick', type: 'a', input: 1, every: '1m', overlap: 'allow' })
    const worker = client.worker().handle('a', () => null)
    const running = worker.run()
    await clock.advance(150_000)
    await passing(worker.stop())
    await running
    const { past } = await client.schedules.get('tick')
    expect(past).toHaveLength(2)
    const { client: other } = await begin()
    await other.import(opened(await linesOf(client)))
    expect((await other.schedules.get('tick')).past).toEqual(past)
  })

  it('brings everything: histories, keys with and without a task, schedules, pauses', async () => {
    const { client, store, waiting, done, archived } = await furnished()
    const lines = await linesOf(client)
    const { client: other, store: there } = await begin()
    const report = await other.import(opened(lines))
    expect(report).toMatchObject({
      tasks: 4,
      wereRunning: 1,
      keys: 1,
      pauses: 1,
      schedules: 1,
      there: 0,
      stopped: null,
    })
    const ids = [waiting.id, done.id, archived.id]
    expect(await there.get(ids)).toEqual(await store.get(ids))
    expect((await other.submit('a', { n: 1 }, { idempotencyKey: 'k' })).id).toBe(waiting.id)
    expect((await other.submit('c', 4, { idempotencyKey: 'orphan' })).deduplicated).toBe(true)
    expect(await other.queue('mail').isPaused()).toBe(true)
    const { cursor, incarnation } = await client.schedules.get('nightly')
    expect(await other.schedules.list()).toMatchObject([{ id: 'nightly', cursor, incarnation }])
    const again = await linesOf(other)
    expect(again.slice(1).filter((line) => !line.includes('"op"'))).toEqual(
      lines.slice(1).filter((line) => !line.includes('"op"')),
    )
  })

  it('brings limits and paused groups, also of a queue without tasks; limits that are set there stay', async () => {
    const { client } = await begin()
    await client.submit('a', 1, { queue: 'mail', group: 'acme' })
    await client.queue('mail').limit({ concurrency: 3, rate: '60/1m' })
    await client.queue('mail').pause({ group: 'acme', reason: 'unpaid' })
    await client.queue('own').limit({ perGroup: 2 })
    await client.queue('empty').pause({ group: 'b', until: '2126-01-01T00:00:00Z' })
    const { client: other } = await begin()
    await other.queue('own').limit({ perGroup: 5 })
    await other.queue('mail').pause({ group: 'there' })
    await other.import(opened(await linesOf(client)))
    const told = async () =>
      (await other.stats())
        .map(({ queue, limits, pausedGroups }) => ({ queue, limits, pausedGroups: pausedGroups.toSorted() }))
        .toSorted((a, b) => (a.queue < b.queue ? -1 : 1))
    const arrived = await told()
    expect(arrived).toMatchObject([
      { queue: 'empty', limits: null, pausedGroups: ['b'] },
      { queue: 'mail', limits: { concurrency: 3, rate: '60/1m', by: 'test' }, pausedGroups: ['acme', 'there'] },
      { queue: 'own', limits: { perGroup: 5 }, pausedGroups: [] },
    ])
    const [task] = (await other.list()).tasks
    expect(task!.group).toBe('acme')
    await refuses('QUEUE_PAUSED', "group 'acme'")(other.claim(task!.id, { workerId: 'w' }))
    await other.import(opened(await linesOf(client)))
    expect(await told()).toEqual(arrived)
    expect((await linesOf(other)).filter((line) => line.includes('"flow"'))).toHaveLength(3)
  })

  it('takes a task that was running as pending; its next claim has a higher fence', async () => {
    const { client, running } = await furnished()
    const { client: other } = await begin()
    await other.import(opened(await linesOf(client)))
    expect(await other.get(running.id)).toMatchObject({ status: 'pending', attempts: 1, lease: null })
    expect((await other.claim(running.id, { workerId: 'x' })).task.attempts).toBe(2)
  })

  it('of the same file again doubles nothing, and leaves what has moved on as it is', async () => {
    const { client, waiting } = await furnished()
    const lines = await linesOf(client)
    const { client: other } = await begin()
    await other.import(opened(lines))
    await other.cancel(waiting.id)
    await other.queue('mail').resume()
    expect(await other.import(opened(lines))).toMatchObject({ tasks: 0, there: 4, keys: 0, pauses: 1, schedules: 0 })
    expect((await other.get(waiting.id)).status).toBe('cancelled')
    expect((await other.count({ status: ['pending', 'completed', 'cancelled', 'archived'] })).count).toBe(4)
  })

  it('that was cut off goes on when it is repeated', async () => {
    const source = await begin()
    for (let n = 0; n < 1_200; n++) await source.client.submit('a', n, { idempotencyKey: `k${n}` })
    const lines = await linesOf(source.client)
    const { client, store, another } = await begin()
    let inserts = 0
    const mortal = await another({
      through: (one) => lossy(keptOpen(one), (call) => (call === 'insert' && ++inserts === 2 ? 'silence' : 'pass')),
      vanishes: true,
    })
    const progress: number[] = []
    void mortal.import(opened(lines), { onProgress: (done) => void progress.push(done) })
    await expect.poll(() => inserts).toBe(2)
    expect(progress).toEqual([500])
    expect(await client.import(opened(lines))).toMatchObject({ tasks: 700, there: 500 })
    expect((await store.count({}, { cap: 5_000, now: null })).count).toBe(1_200)
  })

  it('refuses what is cut short, foreign or spoilt, and writes nothing', async () => {
    const { client } = await furnished()
    const lines = await linesOf(client)
    const { client: other, store } = await begin()
    const refused = refuses('INVALID_EXPORT')
    for (const wrong of [
      [],
      lines.slice(0, -1),
      lines.slice(1),
      lines.filter((_, i) => i !== 5),
      [...lines, lines[5]!],
      [...lines.slice(0, 5), lines[0]!, ...lines.slice(5)],
      [...lines.slice(0, -1), lines.at(-1)!.slice(0, 20)],
      ['{"id":1}', '{"id":2}'],
      ['id,type', '1,a'],
    ])
      await refused(other.import(opened(wrong)))
    expect([(await store.count({}, { cap: 10, now: null })).count, await store.documents.list('')]).toEqual([0, []])
    await expect(other.import(opened(lines.slice(0, -1)))).rejects.toThrow(`cut short after line ${lines.length - 1}`)
  })

  it('leaves out waiting work that is here under the same key, and brings other work without its key', async () => {
    const source = await begin()
    const same = await source.client.submit('a', 1, { idempotencyKey: 'same' })
    const other = await source.client.submit('a', 2, { idempotencyKey: 'other' })
    const lines = await linesOf(source.client)
    const { client } = await begin()
    await client.submit('a', 1, { idempotencyKey: 'same' })
    const holder = await client.submit('a', 'something else', { idempotencyKey: 'other' })
    for (const tasks of [1, 0])
      expect(await client.import(opened(lines))).toMatchObject({ tasks, deduplicated: 1, withoutKey: tasks })
    await refuses('TASK_NOT_FOUND')(client.get(same.id))
    expect((await client.get(other.id)).status).toBe('pending')
    expect((await client.getByIdempotencyKey('other')).id).toBe(holder.id)
  })

  it('that is stopped says so, and what it wrote is told', async () => {
    const { client } = await furnished()
    const lines = await linesOf(client)
    const { client: other } = await begin()
    expect(await other.import(opened(lines), { signal: AbortSignal.abort() })).toMatchObject({ stopped: 'aborted' })
    expect(await other.import(opened(lines))).toMatchObject({ tasks: 4, stopped: null })
  })
})

it('a client that is closed neither exports nor imports', async () => {
  const { client } = await begin()
  await client.close()
  expect(() => client.export()).toThrow(HoldfastError)
  await refuses('STORE_CLOSED')(client.import(opened([])))
})
