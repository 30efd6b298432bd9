/** Which store the command line uses, and who said so. */
import { describe, expect, it } from 'vitest'
import { makeFolder } from './shell.ts'

describe('config', () => {
  it('without any setting, the default is used', async () => {
    const folder = makeFolder()
    expect(await folder.run(['config', 'show'])).toEqual({
      code: 0,
      stdout: 'url: sqlite:./holdfast.db (from default)\nfile: none\n',
      stderr: '',
    })
  })

  it.each([
    ['holdfast.config.ts', "const url: string = 'sqlite:./own.db'\nexport default { url }"],
    ['holdfast.config.js', "export default { url: 'sqlite:./own.db' }"],
    ['holdfast.config.json', '{ "url": "sqlite:./own.db" }'],
  ])('%s names the store; the variable counts before it, the flag before both', async (name, text) => {
    const folder = makeFolder()
    folder.write('package.json', '{ "type": "module" }')
    folder.write(name, text)
    const show = async (args: string[] = [], env = {}): Promise<unknown> =>
      JSON.parse((await folder.run(['config', 'show', '--json', ...args], { env })).stdout)
    expect(await show()).toEqual({ url: { value: 'sqlite:./own.db', from: name }, file: name, settings: {} })
    const env = { HOLDFAST_URL: 'postgres://ann:secret@localhost/app?password=hidden&x=1' }
    expect(await show([], env)).toEqual({
      url: { value: 'postgres://ann:***@localhost/app?password=***&x=1', from: 'HOLDFAST_URL' },
      file: name,
      settings: {},
    })
    expect(await show(['--url', 'sqlite:./flag.db'], env)).toMatchObject({
      url: { value: 'sqlite:./flag.db', from: '--url' },
    })
    expect((await folder.run(['submit', '-t', 't', '-i', '1'])).code).toBe(0)
    expect([folder.has('own.db'), folder.has('holdfast.db')]).toEqual([true, false])
  })

  it.each([
    [{ 'holdfast.config.json': '{' }, 'holdfast.config.json cannot be read'],
    [{ 'holdfast.config.json': '[]' }, 'must be an object'],
    [{ 'holdfast.config.json': '{"uri":"x"}' }, "'uri' is not a setting"],
    [{ 'holdfast.config.json': '{"url":7}' }, 'url must be the address of a store'],
    [{ 'holdfast.config.json': '{"worker":{"concurency":7}}' }, "'worker.concurency' is not a setting"],
    [{ 'holdfast.config.json': '{"worker":7}' }, 'worker must be an object'],
    [{ 'holdfast.config.json': '{"list":{"limit":true}}' }, 'list.limit must be a text or a number'],
    [{ 'holdfast.config.json': '{"purge":{"yes":true}}' }, "'purge.yes' must be typed as a flag"],
    [{ 'holdfast.config.json': '{}', 'holdfast.config.js': '' }, 'are both here'],
  ])('%j is bad input, for every verb that opens a store', async (files, message) => {
    const folder = makeFolder()
    for (const [name, text] of Object.entries(files)) folder.write(name, text)
    for (const args of [['config', 'show'], ['list']]) {
      const { code, stdout, stderr } = await folder.run(args)
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr).toContain(message)
    }
  })
})

describe('the options of a verb', () => {
  const folder = makeFolder()
  folder.write(
    'holdfast.config.json',
    JSON.stringify({
      submit: { queue: 'mail', ttl: '1h', tag: { team: 'blue' }, retryPolicy: { base: '5s' } },
      worker: { concurrency: 20, queue: ['mail', 'reports'], retention: { completed: '7d' } },
      schedule: { create: { queue: 'mail' } },
    }),
  )
  const submit = async (args: string[] = [], env = {}): Promise<Record<string, unknown>> =>
    JSON.parse((await folder.run(['submit', '-t', 't', '-i', '1', '--json', ...args], { env })).stdout)

  it('come from the file, a variable before it, a flag before both', async () => {
    expect(await submit()).toMatchObject({
      queue: 'mail',
      tags: { team: 'blue' },
      retryPolicy: { base: 5_000, multiplier: 2 },
    })
    const env = {
      HOLDFAST_SUBMIT_QUEUE: 'from-variable',
      HOLDFAST_SUBMIT_PRIORITY: '7',
      HOLDFAST_SUBMIT_TAG: 'a=1, b=2',
    }
    expect(await submit([], env)).toMatchObject({ queue: 'from-variable', priority: 7, tags: { a: '1', b: '2' } })
    expect(await submit(['--queue', 'typed'], env)).toMatchObject({ queue: 'typed', priority: 7 })
  })

  it('a flag replaces what the file says by another name', async () => {
    expect(await submit(['--expires-at', '2126-01-28T17:00:00Z'])).toMatchObject({
      expiresAt: '2126-01-28T17:00:00.000Z',
    })
  })

  it('are printed with their values and sources', async () => {
    const env = { HOLDFAST_WORKER_CONCURRENCY: '5', HOLDFAST_WORKER_EXIT_WHEN_STUCK: 'false' }
    const file = '(from holdfast.config.json)'
    expect((await folder.run(['config', 'show'], { env })).stdout.trimEnd().split('\n')).toEqual([
      'url: sqlite:./holdfast.db (from default)',
      'file: holdfast.config.json',
      `submit.queue: mail ${file}`,
      `submit.ttl: 1h ${file}`,
      `submit.retryPolicy: {"base":"5s"} ${file}`,
      `submit.tag: team=blue ${file}`,
      `schedule.create.queue: mail ${file}`,
      'worker.concurrency: 5 (from HOLDFAST_WORKER_CONCURRENCY)',
      `worker.queue: mail, reports ${file}`,
      `worker.retention: completed=7d ${file}`,
      'worker.exitWhenStuck: false (from HOLDFAST_WORKER_EXIT_WHEN_STUCK)',
    ])
    const { settings } = JSON.parse(
      (await folder.run(['config', 'show', 'worker', '--lease-ttl', '9s', '--json'], { env })).stdout,
    )
    expect(settings).toMatchObject({
      'worker.leaseTtl': { value: '9s', from: '--lease-ttl' },
      'worker.concurrency': { value: '5', from: 'HOLDFAST_WORKER_CONCURRENCY' },
      'worker.queue': { value: ['mail', 'reports'], from: 'holdfast.config.json' },
      'worker.stopTimeout': { value: '30s; 2s with --watch', from: 'default' },
      'worker.drain': { value: false, from: 'default' },
    })
  })

  it('of which Kubernetes makes one by the name of a service are ignored', async () => {
    const env = { HOLDFAST_SERVE_PORT: 'tcp://10.0.0.1:8484' }
    expect((await folder.run(['config', 'show', 'serve'], { env })).stdout).toContain('serve.port: 8484 (from default)')
  })

  it.each([
    [['config', 'show', 'wrker'], {}, "'wrker' is not a verb"],
    [['config', 'show', 'schedule'], {}, "name a verb of 'schedule': create, update"],
    [['config', 'show', 'worker', '--concurency', '5'], {}, "'--concurency' is not an option of worker"],
    [['worker', './tasks.ts'], { HOLDFAST_WORKER_DRAIN: 'often' }, 'HOLDFAST_WORKER_DRAIN must be true or false'],
  ])('%j with %j is bad input', async (args, env, message) => {
    const { code, stderr } = await folder.run(args, { env })
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(message) })
  })

  it('a file that is refused does not keep a shell from its completions', async () => {
    const broken = makeFolder()
    broken.write('holdfast.config.json', '{')
    expect((await broken.run(['completions', 'bash'])).code).toBe(0)
  })
})
