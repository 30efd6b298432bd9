/** Every metric of the specification is there, counts what it says, and the Grafana dashboard asks for nothing else. */
import { readFileSync } from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { PermanentError } from '../../src/index.ts'
import { createMetrics, type MetricsOptions } from '../../src/metrics/index.ts'
import { begin, gate } from '../runtime/setup.ts'

/** SPEC 7. */
const NAMES = [
  ...['submitted', 'claimed', 'completed', 'failed', 'retried', 'rescheduled', 'expired', 'cancelled', 'released'].map(
    (name) => `holdfast_tasks_${name}_total`,
  ),
  'holdfast_task_ttl_seconds',
  'holdfast_tasks_near_expiration',
  'holdfast_reschedule_delay_seconds',
  'holdfast_task_wait_seconds',
  'holdfast_task_duration_seconds',
  'holdfast_leases_lost_total',
  'holdfast_stale_writes_rejected_total',
  'holdfast_handlers_stuck',
  'holdfast_queue_depth',
  'holdfast_queue_limit',
  'holdfast_queue_rate_limit',
  'holdfast_queue_paused_groups',
]

/** One of everything that can happen. */
const scene = async (options: MetricsOptions) => {
  const bench = await begin()
  const { client, clock, passing } = bench
  const metrics = createMetrics(client, options)
  onTestFinished(() => metrics.close())
  if (options.of === 'store') {
    await metrics.text()
    await clock.settle()
  }
  const by = { workerId: 'w' }
  await client.submit('done', 1, { queue: 'q', ttl: '1h' })
  const lease = await client.claimNext({ ...by, queue: 'q' })
  await clock.advance(2_000)
  await lease!.complete()
  const bad = await client.submit('bad', 1, { maxRetries: 1 })
  await (await client.claim(bad.id, by)).fail(new Error('again'))
  await clock.advance(60_000)
  await (await client.claim(bad.id, by)).fail(new PermanentError('no'))
  const sleepy = await client.submit('sleepy', 1)
  await (await client.claim(sleepy.id, by)).reschedule('30s')
  await client.cancel(sleepy.id)
  const held = await client.submit('held', 1)
  await (await client.claim(held.id, by)).release()
  const lost = await client.claim(held.id, by)
  await clock.advance(60_000)
  // A lapsed lease is taken after one lease length of contact.
  for (let at = 0; at < 6_000; at += 2_000) {
    await passing(client.claimNext({ workerId: 'other' }))
    await clock.advance(2_000)
  }
  await passing(client.claimNext({ workerId: 'other' }))
  await expect(lost.complete()).rejects.toMatchObject({ code: 'STALE_LEASE' })
  await client.markExpired((await client.submit('late', 1, { ttl: '1h' })).id)
  await client.submit('near', 1, { ttl: '30s' })
  if (options.of === 'store') await clock.advance(1_000)
  return { ...bench, metrics }
}

const sampleOf = (text: string, line: string): number => {
  const found = text.split('\n').find((one) => one.startsWith(`${line} `))
  return found === undefined ? Number.NaN : Number(found.slice(line.length + 1))
}

describe.each([['process'], ['store']] as const)('of the %s', (of) => {
  it('every name is there, and counts [X01][X02][X03][X04][X05]', async () => {
    const { metrics } = await scene({ of })
    const { text, type } = await metrics.text()
    expect(type).toMatch(/^text\/plain/)
    for (const name of NAMES) expect(text).toContain(`# TYPE ${name} `)
    const at = (name: string, task: string, queue = 'default'): number =>
      sampleOf(text, `${name}{task_type="${task}",queue="${queue}"}`)
    expect(at('holdfast_tasks_submitted_total', 'done', 'q')).toBe(1)
    expect(at('holdfast_tasks_claimed_total', 'bad')).toBe(2)
    expect(at('holdfast_tasks_completed_total', 'done', 'q')).toBe(1)
    expect(at('holdfast_tasks_retried_total', 'bad')).toBe(1)
    expect(at('holdfast_tasks_failed_total', 'bad')).toBe(1)
    expect(at('holdfast_tasks_rescheduled_total', 'sleepy')).toBe(1)
    expect(at('holdfast_tasks_cancelled_total', 'sleepy')).toBe(1)
    expect(at('holdfast_tasks_released_total', 'held')).toBe(1)
    expect(at('holdfast_leases_lost_total', 'held')).toBe(1)
    expect(at('holdfast_stale_writes_rejected_total', 'held')).toBe(1)
    expect(at('holdfast_tasks_expired_total', 'late')).toBe(1)
    expect(at('holdfast_tasks_near_expiration', 'near')).toBe(1)
    expect(at('holdfast_tasks_near_expiration', 'done', 'q')).toBeNaN()
    expect(at('holdfast_task_ttl_seconds_sum', 'done', 'q')).toBe(3_600)
    expect(at('holdfast_reschedule_delay_seconds_sum', 'sleepy')).toBe(30)
    expect(at('holdfast_task_duration_seconds_sum', 'done', 'q')).toBe(2)
    expect(at('holdfast_task_wait_seconds_count', 'done', 'q')).toBe(1)
    expect(sampleOf(text, 'holdfast_queue_depth{queue="q",view="completed"}')).toBe(1)
    expect(sampleOf(text, 'holdfast_queue_depth{queue="default",view="failed"}')).toBe(1)
  })
})

it('limits of queues and paused groups are told as long as they are set', async () => {
  const { client } = await begin()
  const metrics = createMetrics(client)
  onTestFinished(() => metrics.close())
  await client.queue('mail').limit({ concurrency: 40, perGroup: 2, rate: '90/1m', ratePerGroup: '10/s' })
  await client.queue('mail').pause({ group: 'acme' })
  await client.queue('fair').limit({ fair: true })
  const told = async (): Promise<string[]> =>
    (await metrics.text()).text
      .split('\n')
      .filter((line) => /^holdfast_queue_(limit|rate_limit|paused_groups)\{/.test(line))
  expect(await told()).toEqual([
    'holdfast_queue_limit{queue="mail",limit="concurrency"} 40',
    'holdfast_queue_limit{queue="mail",limit="per_group"} 2',
    'holdfast_queue_rate_limit{queue="mail",limit="rate"} 1.5',
    'holdfast_queue_rate_limit{queue="mail",limit="rate_per_group"} 10',
    'holdfast_queue_paused_groups{queue="mail"} 1',
  ])
  await client.queue('mail').limit(null)
  await client.queue('mail').resume({ group: 'acme' })
  expect(await told()).toEqual([])
})

it('tasks near expiration that another process has completed since are not told by the process that submitted them', async () => {
  const producer = await begin()
  const metrics = createMetrics(producer.client)
  onTestFinished(() => metrics.close())
  const other = await producer.another()
  const tasks = await Promise.all([1, 2, 3].map((n) => producer.client.submit('near', n, { ttl: '30s' })))
  const near = async (): Promise<number> =>
    sampleOf((await metrics.text()).text, 'holdfast_tasks_near_expiration{task_type="near",queue="default"}')
  expect(await near()).toBe(3)
  for (const { id } of tasks.slice(1)) await (await other.claim(id, { workerId: 'other' })).complete(null)
  await other.delete(tasks[2]!.id)
  expect(await near()).toBe(1)
})

describe.each([['process'], ['store']] as const)('a handler that is stuck, in the metrics of the %s', (of) => {
  it('is counted until it settles', async () => {
    const { client, clock } = await begin()
    const metrics = createMetrics(client, { of })
    onTestFinished(() => metrics.close())
    const end = gate()
    client
      .worker({ stuckAfter: '1s' })
      .handle('late', () => end.opened)
      .start()
    await client.submit('late', {}, { timeout: '1s', maxRetries: 0 })
    const stuck = async (): Promise<number> =>
      sampleOf((await metrics.text()).text, 'holdfast_handlers_stuck{task_type="late",queue="default"}')
    await clock.advance(3_000)
    expect(await stuck()).toBe(1)
    end.open()
    await clock.advance(1_000)
    expect((await stuck()) || 0).toBe(0)
  })
})

it('metrics contain no payload, error or key', async () => {
  const { metrics, client } = await scene({ of: 'process' })
  await client.submit('a', { secret: 'canary-7f3a' }, { idempotencyKey: 'canary-7f3a', tags: { a: 'canary-7f3a' } })
  expect((await metrics.text()).text).not.toContain('canary-7f3a')
})

it('the Grafana dashboard and the page of metrics name these and no others', () => {
  for (const file of ['grafana.json', 'metrics.md']) {
    const text = readFileSync(new URL(`../../docs/${file}`, import.meta.url), 'utf8')
    const named = new Set(
      [...text.matchAll(/holdfast_[a-z_]+/g)].map(([name]) => name.replace(/_(bucket|sum|count)$/, '')),
    )
    expect([...named].sort()).toEqual([...NAMES].sort())
  }
})
