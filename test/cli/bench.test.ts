/** `holdfast bench`: it measures, prices what S3 charges for, and leaves nothing behind. How fast anything is, no test can promise. */
import { describe, expect, it } from 'vitest'
import { startStub } from '../s3/stub-server.ts'
import { exitOf, type Folder, makeFolder } from './shell.ts'

const KEPT = '01a2f7c4-5b1e-7c3d-9f00-000000000001'

/** A store with a task of somebody else. */
const storeOf = async (): Promise<Folder> => {
  const folder = makeFolder()
  await folder.withClient((client) => client.submit('mail', 1, { id: KEPT, queue: 'mail' }))
  return folder
}

const left = (folder: Folder) =>
  folder.withClient(async (client) => ({
    tasks: (await client.list()).tasks.map(({ id, status }) => ({ id, status })),
    queues: (await client.stats()).map(({ queue }) => queue),
    workers: await client.workers(),
  }))

const AS_BEFORE = { tasks: [{ id: KEPT, status: 'pending' }], queues: ['mail'], workers: [] }

describe('bench', () => {
  it('prints how many tasks per second were submitted and completed, and how long one waits', async () => {
    const folder = await storeOf()
    const { code, stdout, stderr } = await folder.run(['bench', '--tasks', '120', '--concurrency', '20'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/^120 tasks on sqlite:.*, 20 at a time, /)
    expect(stdout).toMatch(/^submitted {2}[\d,]+ tasks\/s in a batch$/m)
    expect(stdout).toMatch(/^completed {2}[\d,]+ tasks\/s from the first submit to the last completion$/m)
    expect(stdout).toMatch(/^started {4}[\d.,]+ ms after submit \(p99 [\d.,]+ ms\), one after another$/m)
    expect(stdout).not.toContain('PUT')
    expect(await left(folder)).toEqual(AS_BEFORE)
  })

  it('prints the same as JSON', async () => {
    const folder = await storeOf()
    const { code, stdout } = await folder.run(['bench', '--tasks', '30', '--json'])
    expect(code).toBe(0)
    const told = JSON.parse(stdout)
    expect(told).toMatchObject({ tasks: 30, concurrency: 100, submitToStart: { tasks: 30 } })
    for (const rate of [told.submittedPerSecond, told.completedPerSecond, told.submitToStart.p50])
      expect(rate).toBeGreaterThan(0)
    expect(told.submitToStart.p99).toBeGreaterThanOrEqual(told.submitToStart.p50)
    expect(told.cost).toBeUndefined()
  })

  it('after SIGINT removes what it has created, and exits with 130', async () => {
    const folder = await storeOf()
    const child = folder.start(['bench', '--tasks', '5000', '--concurrency', '1'])
    const ended = exitOf(child)
    await expect
      .poll(() => folder.withClient(async (client) => (await client.count({ type: 'bench' })).count), {
        timeout: 30_000,
      })
      .toBeGreaterThan(5)
    child.kill('SIGINT')
    expect(await ended).toBe(130)
    expect(await left(folder)).toEqual(AS_BEFORE)
  })

  it('makes no store', async () => {
    const folder = makeFolder()
    const { code, stderr } = await folder.run(['bench'])
    expect(code).toBe(5)
    expect(stderr).toContain('STORE_NOT_FOUND')
    expect(folder.has('holdfast.db')).toBe(false)
  })

  it.each([
    ['--tasks', '0'],
    ['--tasks', 'many'],
    ['--concurrency', '-1'],
  ])('refuses %s %s', async (name, value) => {
    const { code, stderr } = await makeFolder().run(['bench', name, value])
    expect(code).toBe(2)
    expect(stderr).toContain(`${name} must be a whole number`)
  })
})

describe('bench --cost', () => {
  it('is refused where requests have no price, with the reason', async () => {
    const folder = await storeOf()
    const { code, stderr } = await folder.run(['bench', '--cost'])
    expect(code).toBe(2)
    expect(stderr).toMatch(/--cost is only for S3, which charges for requests/)
  })

  it('prints requests per task and dollars per million on S3, names the prices, and leaves no task behind', async () => {
    const stub = await startStub()
    try {
      const folder = makeFolder()
      const env = { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b', AWS_EC2_METADATA_DISABLED: 'true' }
      const url = `s3://bucket/jobs?endpoint=${stub.endpoint}&region=us-east-1`
      expect((await folder.run(['init', url], { env })).code).toBe(0)
      const before = [...stub.objects.keys()].sort()
      const args = ['bench', '--cost', '--url', url, '--tasks', '40', '--concurrency', '20']
      const { code, stdout, stderr } = await folder.run(args, { env })
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(stdout).toMatch(
        /^a task in a batch {3}3\.\d\d PUT, 0\.\d\d GET, 0\.\d\d LIST, 0\.\d\d DELETE: \$1[5-9]\.\d\d a million$/m,
      )
      expect(stdout).toMatch(/^a single task {7}4\.\d\d PUT, .* DELETE: \$2\d\.\d\d a million$/m)
      expect(stdout).toMatch(
        /^under limits {8}\d\.\d\d PUT, .* a million \(in a batch, ten tasks of each group, two at once\)$/m,
      )
      expect(stdout).toContain("at AWS's list prices: $5 per million PUT or LIST, $0.40 per million GET, DELETE free")
      // Removed tasks leave tombstones and sweep entries until the next sweep, and groups their registers of places; everything else is gone.
      const after = [...stub.objects.keys()].filter((key) => !/^jobs\/(sweep|tasks|places)\//.test(key)).sort()
      // And the mark that the index of ended tasks is complete, with nothing in it.
      // The wake object stays, too.
      expect(after).toEqual(['jobs/ended.json', ...before, 'jobs/wake.json'].sort())
      for (const [key, { body }] of stub.objects)
        if (key.startsWith('jobs/tasks/')) expect(body).toContain('"removedAt"')
      const { cost, prices } = JSON.parse((await folder.run([...args, '--json'], { env })).stdout)
      expect(prices).toEqual({ PUT: 5, GET: 0.4, LIST: 5, DELETE: 0 })
      expect(cost.batch.requestsPerTask.PUT).toBeLessThan(3.5)
      // Places of the queue and of each group are taken and given up.
      expect(cost.limited.requestsPerTask.PUT).toBeGreaterThan(cost.batch.requestsPerTask.PUT)
      expect(cost.alone.dollarsPerMillionTasks).toBeGreaterThan(cost.batch.dollarsPerMillionTasks)
    } finally {
      await stub.close()
    }
  })
})
