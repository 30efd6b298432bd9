/** Limits and groups on the command line: what an operator sets, sees and selects. */
import { describe, expect, it } from 'vitest'
import { type Folder, makeFolder, normalised } from './shell.ts'

const json = async (folder: Folder, ...args: string[]) => JSON.parse((await folder.run([...args, '--json'])).stdout)

/** Columns as wide as their content, one space between them. */
const squeezed = (text: string): string => normalised(text).replaceAll(/ +/g, ' ').replaceAll(/ $/gm, '')

const submit = async (folder: Folder, group: string | null, ...more: string[]): Promise<string> => {
  const args = ['submit', '-t', 'mail', '-i', '1', ...(group === null ? [] : ['--group', group]), ...more]
  const { code, stdout } = await folder.run(args)
  expect(code).toBe(0)
  return stdout.trim()
}

describe('limit', () => {
  it('sets the limits of a queue in place of those before, prints them, and removes them', async () => {
    const folder = makeFolder()
    await submit(folder, null, '--queue', 'mail')
    expect(await folder.run(['limit'])).toEqual({ code: 0, stdout: '', stderr: 'no queue has limits\n' })
    const set = await folder.run(['limit', 'mail', '--concurrency', '40', '--per-group', '2'])
    expect({ ...set, stdout: squeezed(set.stdout) }).toEqual({
      code: 0,
      stdout: 'QUEUE LIMITS\nmail 40 at once, 2 per group\n',
      stderr: '',
    })
    await folder.run(['limit', 'mail', '--rate', '60/1m', '--rate-per-group', '10/s', '--burst', '5'])
    await folder.run(['limit', 'other', '--fair'])
    expect(squeezed((await folder.run(['limit'])).stdout)).toBe(
      'QUEUE LIMITS\nmail 60/1m, 10/s per group, burst 5\nother groups take turns\n',
    )
    expect(await json(folder, 'limit', 'mail')).toEqual([
      {
        queue: 'mail',
        limits: { rate: '60/1m', ratePerGroup: '10/s', burst: 5, at: expect.any(String), by: expect.any(String) },
      },
    ])
    expect(await json(folder, 'limit', 'mail', '--none')).toEqual([{ queue: 'mail', limits: null }])
    expect((await json(folder, 'limit')).map(({ queue }: { queue: string }) => queue)).toEqual(['other'])
  })

  it.each([
    [['mail', '--concurrency', 'many'], 'concurrency must be a whole number'],
    [['mail', '--concurrency', '0'], 'concurrency must be at least 1: pause the queue to stop it'],
    [['mail', '--rate', 'often'], "rate 'often' must be a count and a duration, such as '60/1m'"],
    [['mail', '--rate', '60/1ms'], 'rate must be over a time of 1 second to 1 day'],
    [['mail', '--burst', '3'], 'burst needs a rate or ratePerGroup'],
    [['mail', '--none', '--fair'], '--none removes all limits: give no others with it'],
    [['--concurrency', '3'], 'QUEUE is required'],
    [['mail', '--concurency', '3'], 'Did you mean --concurrency?'],
    [['not a name', '--concurrency', '3'], 'queue'],
  ])('%j is bad input, and nothing is limited', async (args, message) => {
    const folder = makeFolder()
    await folder.run(['init'])
    const { code, stdout, stderr } = await folder.run(['limit', ...args])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(message)
    expect(await json(folder, 'limit')).toEqual([])
  })

  it('warns when the name of the queue looks misspelt', async () => {
    const folder = makeFolder()
    await submit(folder, null, '--queue', 'mail')
    const { code, stderr } = await folder.run(['limit', 'mial', '--concurrency', '1'])
    expect(code).toBe(0)
    expect(stderr).toContain("queue 'mial' has never been used here: did you mean 'mail'? It is limited all the same")
    expect((await folder.run(['limit', 'quite-new', '--concurrency', '1'])).stderr).toBe('')
  })

  it('binds the workers of other processes, and status says what holds a task back', async () => {
    const folder = makeFolder()
    const [first, second] = [await submit(folder, 'acme'), await submit(folder, 'acme')]
    await folder.run(['limit', 'default', '--per-group', '1'])
    const { status, why } = await folder.withClient(async (client) => {
      await client.claim(first, { workerId: 'w1', leaseTtl: '1h' })
      const worker = client.worker({ id: 'w2' }).handle('mail', () => null)
      worker.start()
      await expect.poll(async () => (await client.workers()).length).toBe(1)
      const [shown, explained] = await Promise.all([folder.run(['status', second]), folder.run(['why', second])])
      await worker.stop()
      return { status: shown.stdout, why: explained.stdout }
    })
    expect(status).toMatch(/^group: acme$/m)
    expect(status).toMatch(/^why: .*group 'acme' has 1 of 1 running \(w1\)/m)
    expect(why).toContain("group 'acme' has 1 of 1 running (w1)")
    expect((await json(folder, 'status', second)).group).toBe('acme')
  })
})

describe('a group', () => {
  it('is paused and resumed by itself, and stats shows it', async () => {
    const folder = makeFolder()
    const id = await submit(folder, 'acme', '--queue', 'mail')
    expect(await folder.run(['pause', 'mail', '--group', 'acme', '--reason', 'unpaid'])).toEqual({
      code: 0,
      stdout: 'mail, group acme paused\n',
      stderr: '',
    })
    await folder.run(['limit', 'mail', '--concurrency', '3'])
    expect(squeezed((await folder.run(['stats'])).stdout)).toMatch(/^mail .*3 at once; paused: acme$/m)
    expect(await json(folder, 'stats')).toMatchObject([{ queue: 'mail', paused: false, pausedGroups: ['acme'] }])
    expect((await folder.run(['why', id])).stdout).toContain("Its group 'acme' is paused in queue 'mail'")
    // A resume of the queue leaves the group paused.
    await folder.run(['resume', 'mail'])
    expect(await json(folder, 'stats')).toMatchObject([{ pausedGroups: ['acme'] }])
    expect(await json(folder, 'resume', 'mail', '--group', 'acme')).toEqual([
      { queue: 'mail', group: 'acme', paused: false },
    ])
    expect(await json(folder, 'stats')).toMatchObject([{ pausedGroups: [], limits: { concurrency: 3 } }])
  })

  it('can be paused before the first task of its queue, and stats shows that too', async () => {
    const folder = makeFolder()
    await folder.run(['init'])
    await folder.run(['pause', 'later', '--group', 'acme', '--for', '1h'])
    expect(await json(folder, 'stats')).toMatchObject([{ queue: 'later', pausedGroups: ['acme'] }])
  })

  it('selects what list and cancel mean, and amend changes it', async () => {
    const folder = makeFolder()
    const [acme, other] = [await submit(folder, 'acme'), await submit(folder, 'other')]
    await submit(folder, null)
    expect((await json(folder, 'list', '--group', 'acme')).tasks).toMatchObject([{ id: acme, group: 'acme' }])
    await folder.run(['amend', other, '--group', 'acme'])
    expect((await json(folder, 'list', '--group', 'acme')).tasks).toHaveLength(2)
    await folder.run(['amend', acme, '--group', 'none'])
    expect((await json(folder, 'status', acme)).group).toBeNull()
    expect((await folder.run(['cancel', '--group', 'acme', '--yes'])).stdout).toBe(
      'cancelled 1 task, asked 0 to stop\n',
    )
    expect((await json(folder, 'status', other)).status).toBe('cancelled')
    expect((await json(folder, 'list', '--status', 'pending')).tasks).toHaveLength(2)
  })

  it('of dead letters is --task-group: --group is their error', async () => {
    const folder = makeFolder()
    const ids = await folder.withClient(async (client) => {
      const dead: string[] = []
      for (const group of ['acme', 'acme', 'other']) {
        const { id } = await client.submit('mail', 1, { group, maxRetries: 0 })
        await (await client.claim(id, { workerId: 'w' })).fail(new Error('boom'))
        dead.push(id)
      }
      return dead
    })
    expect((await json(folder, 'dead', '--task-group', 'acme')).tasks).toHaveLength(2)
    expect((await json(folder, 'dead', '--groups', '--task-group', 'other')).groups).toMatchObject([{ count: 1 }])
    expect((await folder.run(['replay', '--task-group', 'other', '--yes'])).stdout).toBe('replayed 1 task\n')
    expect((await json(folder, 'status', ids[2]!)).status).toBe('pending')
    expect((await folder.run(['purge', '--task-group', 'acme', '--yes'])).stdout).toBe('purged 2 tasks\n')
    expect((await json(folder, 'dead')).tasks).toEqual([])
  })
})

describe('submit --coalesce', () => {
  it('joins the task that waits, and says so', async () => {
    const folder = makeFolder()
    const args = ['submit', '-t', 'index', '-i', '7', '--coalesce', 'doc-7', '--coalesce-delay', '1h']
    const first = await folder.run([...args, '--coalesce-max-wait', '2h'])
    const second = await folder.run(args)
    expect(second).toEqual({
      code: 0,
      stdout: first.stdout,
      stderr: "the key 'doc-7' has a task that waits: this is it\n",
    })
    expect(await json(folder, ...args)).toMatchObject({ coalesced: true, status: 'pending' })
  })

  it.each([
    [['--coalesce', 'k', '--key', 'k'], 'idempotencyKey cannot be used with coalesce'],
    [['--coalesce', 'k', '--coalesce-max-wait', '1m'], 'maxWait needs a delay'],
    [['--coalesce-delay', '1m'], '--coalesce is required'],
  ])('%j is refused, and no store is made', async (more, message) => {
    const folder = makeFolder()
    const { code, stderr } = await folder.run(['submit', '-t', 'index', '-i', '7', ...more])
    expect(code).toBe(2)
    expect(stderr).toContain(message)
    expect(folder.has('holdfast.db')).toBe(false)
  })
})
