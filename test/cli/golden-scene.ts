/** One store in which every verb has something to say, and the commands that are typed there, verb by verb, in this order. */
import { openSqlite } from '../../src/store/sqlite/store.ts'
import type { Folder } from './shell.ts'

/** Ids that are the same in every run: the last digits name the task. */
const idOf = (n: number): string => `01a2f7c4-5b1e-7c3d-9f00-0000000000${String(n).padStart(2, '0')}`

const WAITING = idOf(1)
const LATER = idOf(2)
const SLEEPER = idOf(3)
const HELD = idOf(4)
const BROKEN = idOf(5)
const EXPIRED = idOf(6)
const DONE = idOf(7)
const DEAD = [idOf(8), idOf(9)] as const
const ORDER = idOf(11)

/** The frames are those of no machine. */
const withStack = (error: Error, stack: string): Error => Object.assign(error, { stack })

const BOOM = withStack(
  new Error('boom\u001b[31m\nsecond line', {
    cause: withStack(Object.assign(new Error('connect refused'), { code: 'ECONNREFUSED', detail: 'port 1' }), ''),
  }),
  'Error: boom\n    at send (/app/mail.js:12:9)\n    at run (/app/tasks.js:3:1)',
)

export const setScene = async (folder: Folder): Promise<void> => {
  folder.write('tasks.mjs', 'export const double = (input) => input * 2')
  await folder.withClient(async (client) => {
    const claim = async (id: string) => client.claim(id, { workerId: 'worker-1', leaseTtl: '1h' })
    await client.submit('waiting', { to: 'ann' }, { id: WAITING })
    await client.submit('later', 1, {
      id: LATER,
      at: '2126-01-28T17:00:00Z',
      expiresAt: '2126-01-28T18:00:00.250Z',
      tags: { team: 'blue' },
      idempotencyKey: 'later-1',
    })
    await client.submit('sleeper', 1, { id: SLEEPER, maxReschedules: 100, queue: 'mail' })
    await (await claim(SLEEPER)).reschedule('1h')
    await client.submit('held', 1, { id: HELD })
    await claim(HELD)
    await client.submit('broken', 1, { id: BROKEN, maxRetries: 0 })
    await (await claim(BROKEN)).fail(BOOM)
    await client.submit('late', 1, { id: EXPIRED, ttl: '1h' })
    await client.markExpired(EXPIRED)
    await client.submit('done', 1, { id: DONE })
    await (await claim(DONE)).complete({ n: 1 })
    for (const [n, id] of DEAD.entries()) {
      await client.submit('mail', n, { id, maxRetries: 0, queue: 'mail' })
      await (await claim(id)).fail(withStack(new TypeError(`user ${n} has no address`), ''))
    }
    await client.queue('mail').pause({ reason: 'repairs' })
    await client.submit('double', 21, { id: idOf(10), queue: 'sums' })
    await client.submit('order', { total: 3 }, { id: ORDER, queue: 'orders' })
    await client
      .worker({ id: 'worker-2', queues: ['orders'] })
      .handle('order', async (_, ctx) => {
        await ctx.step('charge', () => ({ receipt: 7 }))
        await Promise.all([ctx.waitFor('approval', { signal: 'approved', timeout: '7d' }), ctx.sleep('remind', '1d')])
      })
      .drain()
  })
  await register(folder)
}

/** A worker that will be heard of for an hour to come. */
const register = async (folder: Folder): Promise<void> => {
  const store = await openSqlite(folder.url.slice('sqlite:'.length))
  const beatAt = new Date(Date.now() + 3_600_000).toISOString()
  const info = { types: ['held', 'done'], queues: ['default'], concurrency: 10, version: '1.2.3', host: 'h', pid: 1 }
  await store.documents.put('worker/worker-1', JSON.stringify({ ...info, startedAt: beatAt, beatAt }), 0)
  await store.close()
}

export interface Typed {
  readonly args: readonly string[]
  /** On a terminal: what is typed when the program has said something like it. */
  readonly type?: readonly (readonly [when: RegExp, keys: string])[]
}

const typed = (...lines: readonly (string | Typed)[]): readonly Typed[] =>
  lines.map((line) => (typeof line === 'string' ? { args: line.split(' ') } : line))

const UNKNOWN = idOf(99)
const yes = [[/\[y\/N\]/, 'y\n']] as const
const no = [[/\[y\/N\]/, 'n\n']] as const

/** By verb: one golden file each. `demo` is a show of ten seconds, `serve` and `bench` do not end by themselves: they are tested elsewhere. */
export const COMMANDS: Readonly<Record<string, readonly Typed[]>> = {
  help: typed('history --help', 'schedule next --help', 'lst'),
  status: typed(
    `status ${LATER}`,
    `status ${BROKEN}`,
    `status ${HELD}`,
    `status ${ORDER}`,
    `status ${UNKNOWN}`,
    'status abc',
  ),
  list: typed('list', 'list --status dead --limit 1', 'list --type none', 'list --status parked'),
  history: typed(`history ${SLEEPER}`, `history ${DONE} --times`, `history ${ORDER}`),
  why: typed(`why ${WAITING}`, `why ${SLEEPER}`, `why ${HELD}`, `why ${BROKEN}`, `why ${ORDER}`),
  stats: typed('stats'),
  dead: typed('dead', 'dead --groups', 'dead --type none'),
  workers: typed('workers'),
  doctor: typed('doctor'),
  verify: typed('verify', 'verify --witness ./missing'),
  config: typed('config show'),
  init: typed('init'),
  migrate: typed('migrate'),
  tail: typed({ args: ['tail', '--since', '1h', '--type', 'done'], type: [[/completed/, '\u0003']] }),
  replay: typed(
    `replay ${UNKNOWN}`,
    `replay ${DEAD[0]}`,
    { args: ['replay', '--type', 'mail'], type: no },
    'replay --type mail --dry-run',
    { args: ['replay', '--type', 'mail', '--yes'] },
  ),
  cancel: typed(
    `cancel ${DEAD[0]} ${DONE}`,
    { args: ['cancel', '--type', 'mail'], type: yes },
    'cancel --type mail --yes',
  ),
  retry: typed(`retry ${DEAD[0]}`, `retry ${EXPIRED}`),
  archive: typed(`archive ${DONE}`, `archive ${WAITING}`),
  unarchive: typed(`unarchive ${DONE}`),
  purge: typed({ args: ['purge', BROKEN], type: no }, `purge ${BROKEN} --yes`),
  delete: typed(`delete ${EXPIRED}`, `delete ${WAITING}`),
  retention: typed(
    'retention',
    'retention --completed 7d --failed 0',
    'retention --json',
    'retention --completed soon',
    'retention --off',
  ),
  prune: typed(
    'prune --older-than 7d',
    { args: ['prune', '--older-than', '0'], type: yes },
    'prune --older-than 0 --yes',
  ),
  pause: typed(
    'pause sums mail',
    'pause default --until 2126-01-28T17:00:00Z',
    'stats',
    'pause x --for 1m --until 2126-01-28T17:00:00Z',
  ),
  resume: typed('resume sums mail default'),
  worker: typed('worker ./tasks.mjs --drain --queue sums', 'worker ./none.mjs'),
  submit: typed(`submit -t a -i 1`, 'submit -t a -i {', 'submit -t a'),
  schedule: typed(
    'schedule list',
    {
      args: [
        'schedule',
        'create',
        'nightly',
        '-t',
        'report',
        '-i',
        '{}',
        '--cron',
        '30 2 * * *',
        '--timezone',
        'Europe/Berlin',
      ],
    },
    'schedule create poll -t poll -i {} --every 5m --mode fixed-delay --paused',
    'schedule create nightly -t report -i {} --every 5m',
    'schedule list',
    'schedule show nightly',
    'schedule next nightly --count 2',
    'schedule update nightly --overlap allow',
    'schedule pause nightly',
    'schedule resume nightly',
    'schedule trigger nightly',
    'schedule delete nightly',
    'schedule show nightly',
  ),
  completions: typed('completions fish', 'completions csh'),
  amend: typed(`amend ${LATER} --priority 5 --expires-at none --tag team=red`, `amend ${HELD} --priority 1`),
  'run-now': typed(`run-now ${LATER} ${HELD}`),
  signal: typed(
    `signal ${ORDER} other -i 1 --signal-id s-1`,
    `signal ${ORDER} other -i 1 --signal-id s-1`,
    `signal ${ORDER} approved -i {"by":"ann"} --signal-id s-2`,
    `status ${ORDER}`,
    `history ${ORDER}`,
    `signal ${DEAD[0]} approved`,
    `signal ${ORDER}`,
  ),
  expire: typed(`expire ${LATER} ${HELD}`),
  limit: typed(
    'limit',
    'limit mail --concurrency 40 --per-group 2 --rate 60/1m --burst 5',
    'limit default --fair',
    'pause mail --group acme',
    'limit',
    'limit mail',
    'stats',
    'limit mial --concurrency 2',
    'limit mail --rate often',
    'limit mail --burst 2',
    'limit mail --concurency 2',
    'limit --concurrency 2',
    'limit mail --none',
  ),
}
