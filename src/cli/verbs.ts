/** The verbs, their options and their examples. What a verb does is in commands/, loaded when it is called. */
import { MOVING_VERBS } from './moving-verbs.ts'
import { OPERATOR_VERBS } from './operator-verbs.ts'
import { SCHEDULE_VERBS } from './schedule-verbs.ts'
import { SERVE_VERB } from './serve-verb.ts'

type Run = (args: readonly string[], options: never) => Promise<number>

export interface Verb {
  readonly name: string
  readonly alias?: string
  readonly summary: string
  readonly details?: string
  readonly args?: string
  /** Flags and what they mean; a flag that ends in `…` may be given several times. */
  readonly options?: readonly (readonly [flags: string, meaning: string])[]
  readonly examples: readonly string[]
  /** What it does; a family of verbs has these instead. */
  readonly load?: () => Promise<{ readonly run: Run }>
  readonly verbs?: readonly Verb[]
}

const ID = '01a2f7c4-5b1e-7c3d-9f00-2a6d1c0e8b47'

export const VERBS: readonly Verb[] = [
  {
    name: 'submit',
    summary: 'put a task into the store; prints its id',
    options: [
      ['-t, --type <type>', 'which handler runs it (required)'],
      ['-i, --input <json>', 'the input: JSON, - for standard input, @file (required)'],
      ['--queue <queue>', 'where it waits (default: default)'],
      ['--priority <n>', '-1000 to 1000, higher first (default: 0)'],
      ['--ttl <duration>', 'expires if not claimed within this time: 30s, 5m, 1h30m, 7d'],
      ['--expires-at <instant>', 'expires if not claimed before: 2026-01-28T17:00:00Z'],
      ['--at <instant>', 'not before this instant'],
      ['--delay <duration>', 'not before this long from now'],
      ['--max-retries <n>', 'retries after the first run, or unlimited (default: 3)'],
      ['--max-reschedules <n>', 'durable sleeps, or unlimited (default: unlimited)'],
      ['--timeout <duration>', 'limit on one run, or none (default: 5m)'],
      ['--key <key>', 'idempotency key: the same key gives the same task'],
      ['--tag <name=value…>', 'a label of your own'],
    ],
    examples: [
      `holdfast submit -t send_email -i '{"to":"ann@example.com"}' --ttl 1h`,
      `holdfast submit -t report -i @report.json --at 2026-01-28T17:00:00Z --key report-2026-01`,
      `echo '[1,2,3]' | holdfast submit -t sum -i - --json`,
    ],
    load: () => import('./commands/submit.ts'),
  },
  {
    name: 'status',
    alias: 'get',
    summary: 'everything about one task',
    args: '<id>',
    examples: [`holdfast status ${ID}`, `holdfast get ${ID} --json`],
    load: () => import('./commands/status.ts'),
  },
  {
    name: 'list',
    summary: 'tasks, newest first',
    details: 'The cursor of the next page is printed on standard error.',
    options: [
      [
        '--status <status…>',
        'a status or view, or several: pending, ready, scheduled, retrying, running, completed, failed, dead, cancelled, expired, archived',
      ],
      ['--type <type>', 'only this type'],
      ['--queue <queue>', 'only this queue'],
      ['--tag <name=value>', 'only with this label'],
      ['--limit <n>', 'at most so many, up to 1000 (default: 100)'],
      ['--cursor <cursor>', 'go on where the page before ended'],
      ['--oldest', 'oldest first'],
    ],
    examples: ['holdfast list --status expired', 'holdfast list --status ready,retrying --queue mail --limit 20'],
    load: () => import('./commands/list.ts'),
  },
  {
    name: 'history',
    summary: 'every move of one task, one line each',
    args: '<id>',
    options: [['--times', 'end each line with its instant']],
    examples: [`holdfast history ${ID}`, `holdfast history ${ID} --times`],
    load: () => import('./commands/history.ts'),
  },
  {
    name: 'why',
    summary: 'why is this task not running?',
    args: '<id>',
    examples: [`holdfast why ${ID}`],
    load: () => import('./commands/why.ts'),
  },
  {
    name: 'retry',
    summary: 'run failed or cancelled tasks again; a running one loses its lease',
    details: 'Each task has its own result; the exit code is that of the worst.',
    args: '<id...>',
    examples: [`holdfast retry ${ID}`],
    load: () => import('./commands/retry.ts'),
  },
  ...OPERATOR_VERBS,
  ...SCHEDULE_VERBS,
  ...MOVING_VERBS,
  {
    name: 'worker',
    summary: 'run tasks with the handlers of a module',
    details:
      'MODULE is a .ts or .js file. Its default export is either a function that registers handlers,\n' +
      '  export default (worker) => worker.handle(sendEmail, async (input, ctx) => { … })\n' +
      'or an object of handlers by type; without a default export, each exported function is the handler of its name.\n' +
      'A module may also export a worker of its own, connected to a store of its own.\n' +
      'SIGTERM or SIGINT stops it gracefully, a second one at once.',
    args: '<module>',
    options: [
      ['--concurrency <n>', 'handlers at once (default: 10)'],
      ['--queue <queue…>', 'queues to serve, round-robin (default: default)'],
      ['--drain', 'run what is ready, then stop'],
      ['--watch', 'start anew when the module changes, or what it imports: for development'],
    ],
    examples: [
      'holdfast worker ./tasks.ts --concurrency 20',
      'holdfast worker ./tasks.ts --queue mail --queue reports --drain',
      'holdfast worker ./tasks.ts --watch',
    ],
    load: () => import('./commands/worker.ts'),
  },
  SERVE_VERB,
  {
    name: 'stats',
    summary: 'how many tasks are where, queue by queue',
    examples: ['holdfast stats', 'holdfast stats --json'],
    load: () => import('./commands/stats.ts'),
  },
  {
    name: 'init',
    summary: 'make the store, if it is not there yet',
    details:
      'On SQLite it makes the file; on PostgreSQL the schema and its tables, which connect does not do by itself.\n' +
      'Safe to repeat: a store that is there is left as it is, but for an upgrade.',
    args: '[url]',
    examples: [
      'holdfast init sqlite:./holdfast.db',
      'holdfast init postgres://ann@localhost/app?schema=holdfast --json',
    ],
    load: () => import('./commands/init.ts'),
  },
  {
    name: 'migrate',
    summary: 'bring the tables of a store up to date',
    details:
      'For applications that have no right to change tables and connect with { postgres: { migrate: false } }:\n' +
      'run this with a role that has it, before the new release starts.',
    args: '[url]',
    examples: ['holdfast migrate postgres://owner@localhost/app'],
    load: () => import('./commands/migrate.ts'),
  },
  {
    name: 'bench',
    summary: 'how fast the store is from here, and what a task costs on S3',
    details:
      'Runs tasks that do nothing through a queue of its own, and removes them and the queue, also after SIGINT.\n' +
      'Other queues are not touched; their workers share the store with it meanwhile.',
    options: [
      ['--tasks <n>', 'in one batch (default: 1000)'],
      ['--concurrency <n>', 'handlers at once (default: 100)'],
      ['--cost', 'on S3: requests of a task, and dollars for a million tasks'],
    ],
    examples: ['holdfast bench', 'holdfast bench --url s3://my-bucket/jobs --cost --json'],
    load: () => import('./commands/bench.ts'),
  },
  {
    name: 'demo',
    summary: 'a show of ten seconds: tasks, workers, one of them killed, nothing lost',
    details: 'Uses a store of its own in a temporary folder, unless --url names one.',
    options: [['--keep', 'leave the store in place to look around']],
    examples: ['holdfast demo', 'holdfast demo --keep'],
    load: () => import('./commands/demo.ts'),
  },
]
