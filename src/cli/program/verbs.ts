/** The verbs, their options and their examples. What a verb does is in commands/, loaded when it is called. */

import { EACH, OPERATOR_VERBS } from './operator-verbs.ts'
import { SCHEDULE_VERBS } from './schedule-verbs.ts'
import { SERVE_VERB } from './serve-verb.ts'
import { MOVING_VERBS } from './transfer-verbs.ts'

type Run = (args: readonly string[], options: never) => Promise<number>

export interface Verb {
  readonly name: string
  readonly alias?: string
  readonly summary: string
  readonly details?: string
  readonly args?: string
  /** Flags and their meaning; a flag that ends in `…` may be repeated. */
  readonly options?: readonly (readonly [flags: string, meaning: string])[]
  /** Flags of other verbs may follow: they are arguments. */
  readonly passesFlags?: boolean
  /** False: variables and the config file are not read. */
  readonly settings?: false
  readonly examples: readonly string[]
  /** Loads the implementation; a family of verbs has `verbs` instead. */
  readonly load?: () => Promise<{ readonly run: Run }>
  readonly verbs?: readonly Verb[]
}

const ID = '01a2f7c4-5b1e-7c3d-9f00-2a6d1c0e8b47'

export const VERBS: readonly Verb[] = [
  {
    name: 'submit',
    summary: 'submit a task; prints its id',
    options: [
      ['-t, --type <type>', 'which handler runs it (required)'],
      ['-i, --input <json>', 'the input: JSON, - for standard input, @file (required)'],
      ['--queue <queue>', 'the queue to submit to (default: default)'],
      ['--group <group>', 'whose work it is, for limits and fair shares'],
      ['--priority <n>', '-1000 to 1000, higher first (default: 0)'],
      ['--ttl <duration>', 'expires if not claimed within this time: 30s, 5m, 1h30m, 7d'],
      ['--expires-at <instant>', 'expires if not claimed before: 2026-01-28T17:00:00Z'],
      ['--at <instant>', 'do not run before this instant'],
      ['--delay <duration>', 'do not run before this time has passed'],
      ['--max-retries <n>', 'retries after the first run, or unlimited (default: 3)'],
      ['--max-attempts <n>', 'instead of --max-retries: runs in all; 0: unlimited'],
      [
        '--retry-policy <name|json>',
        'quick (3 retries in seconds), patient (8 in minutes), stubborn (20 in days), or JSON such as {"base":"5s","max":"1h"} (default: quick)',
      ],
      ['--max-reschedules <n>', 'durable sleeps, or unlimited (default: unlimited)'],
      ['--timeout <duration>', 'limit on one run, or none (default: 5m)'],
      ['--key <key>', 'idempotency key: the same key returns the same task'],
      [
        '--idempotency-ttl <duration>',
        'with --key: ends the key after exactly this time (default: with its task, at least 24h)',
      ],
      ['--on-mismatch <what>', 'the key has another type or input: error, or existing for its task (default: error)'],
      ['--id <uuid>', 'the id of the task (default: a new one)'],
      ['--coalesce <key>', 'joins the waiting task of this type and key instead of creating a second one'],
      ['--coalesce-delay <duration>', 'debounce: due this long after the last trigger of the key'],
      ['--coalesce-max-wait <duration>', 'with a delay: due at the latest this long after the first trigger'],
      ['--tag <name=value…>', 'a label of your choice'],
    ],
    examples: [
      `holdfast submit -t send_email -i '{"to":"ann@example.com"}' --ttl 1h`,
      `holdfast submit -t report -i @report.json --at 2026-01-28T17:00:00Z --key report-2026-01`,
      `holdfast submit -t index -i '{"doc":7}' --coalesce doc-7 --coalesce-delay 5s`,
      `holdfast submit -t charge -i '{"order":7}' --key order-7 --idempotency-ttl 30d --retry-policy patient`,
      `echo '[1,2,3]' | holdfast submit -t sum -i - --json`,
    ],
    load: () => import('../commands/submit.ts'),
  },
  {
    name: 'status',
    alias: 'get',
    summary: 'everything about one task',
    args: '<id>',
    examples: [`holdfast status ${ID}`, `holdfast get ${ID} --json`],
    load: () => import('../commands/status.ts'),
  },
  {
    name: 'list',
    summary: 'tasks, newest first',
    details: 'The cursor of the next page is printed on standard error.',
    options: [
      [
        '--status <status…>',
        'a status or view, or several: pending, ready, scheduled, retrying, parked, running, completed, failed, dead, cancelled, expired, archived',
      ],
      ['--type <type>', 'only this type'],
      ['--queue <queue>', 'only this queue'],
      ['--group <group>', 'only tasks of this group'],
      ['--tag <name=value>', 'only with this label'],
      ['--limit <n>', 'maximum number of tasks, up to 1000 (default: 100)'],
      ['--cursor <cursor>', 'continue where the previous page ended'],
      ['--oldest', 'oldest first'],
    ],
    examples: ['holdfast list --status expired', 'holdfast list --status ready,retrying --queue mail --limit 20'],
    load: () => import('../commands/list.ts'),
  },
  {
    name: 'history',
    summary: 'every move, step and signal of one task, by time, one line each',
    args: '<id>',
    options: [['--times', 'add the time to each line']],
    examples: [`holdfast history ${ID}`, `holdfast history ${ID} --times`],
    load: () => import('../commands/history.ts'),
  },
  {
    name: 'why',
    summary: 'why is this task not running?',
    args: '<id>',
    examples: [`holdfast why ${ID}`],
    load: () => import('../commands/why.ts'),
  },
  {
    name: 'retry',
    summary: 'run failed or cancelled tasks again; a running one loses its lease',
    details: EACH,
    args: '<id...>',
    examples: [`holdfast retry ${ID}`],
    load: () => import('../commands/retry.ts'),
  },
  {
    name: 'amend',
    summary: 'change a waiting task: its priority, time, expiry, input, group or tags',
    details: 'A running or ended task is not changed (exit code 4).',
    args: '<id>',
    options: [
      ['--priority <n>', '-1000 to 1000, higher first'],
      ['--at <instant>', 'not before this instant (ISO 8601)'],
      ['--delay <duration>', 'not before this long from now'],
      ['--ttl <duration>', 'expires this long from now'],
      ['--expires-at <instant>', 'expires at this instant; `none`: never'],
      ['-i, --input <json>', 'the new input: JSON, - for standard input, @file'],
      ['--group <group>', 'another group; `none`: no group'],
      ['--tag <name=value…>', 'labels, in place of all present ones'],
    ],
    examples: [`holdfast amend ${ID} --priority 10`, `holdfast amend ${ID} --delay 2h --ttl 1d`],
    load: () => import('../commands/amend.ts'),
  },
  {
    name: 'run-now',
    summary: 'make tasks that wait for their time due now',
    details: EACH,
    args: '<id...>',
    examples: [`holdfast run-now ${ID}`],
    load: () => import('../commands/run-now.ts'),
  },
  {
    name: 'signal',
    summary: 'send a signal to a task: a handler that waits for it continues',
    details:
      'It is kept until a `ctx.waitFor` of the handler takes it. A task that has ended refuses it (exit code 4).',
    args: '<id> <name>',
    options: [
      ['-i, --input <json>', 'the value: JSON, - for standard input, @file (default: none)'],
      ['--signal-id <id>', 'names this signal: a repeat with the same id is kept once'],
    ],
    examples: [`holdfast signal ${ID} approved -i '{"by":"ann"}'`, `holdfast signal ${ID} paid --signal-id payment-7`],
    load: () => import('../commands/signal.ts'),
  },
  {
    name: 'expire',
    summary: 'mark pending tasks as expired now',
    details: `${EACH} A running or ended task cannot expire.`,
    args: '<id...>',
    examples: [`holdfast expire ${ID}`],
    load: () => import('../commands/expire.ts'),
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
      'A module may also export its own worker, connected to its own store.\n' +
      'SIGTERM or SIGINT stops it gracefully, a second signal at once.\n' +
      'A handler that has not settled within --stuck-after of its timeout, cancel or lost lease is stuck and gives up its slot. Once as many are stuck\n' +
      'as there are slots, the worker finishes running tasks and exits with 7, so that a supervisor restarts it.',
    args: '<module>',
    options: [
      ['--concurrency <n>', 'handlers that run at the same time (default: 10)'],
      ['--queue <queue…>', 'queues to serve, round-robin (default: default)'],
      ['--lease-ttl <duration>', 'how long a lease lasts without a heartbeat (default: 5s, 30s on S3)'],
      ['--poll-interval <duration>', 'the longest time between two looks for work (default: 2s)'],
      [
        '--stop-timeout <duration>',
        'how long running handlers may continue after a signal (default: 30s; 2s with --watch)',
      ],
      ['--retention <status=duration…>', 'remove tasks this long after they ended: completed=7d; 0: at once'],
      ['--drain', 'run the ready tasks, then stop'],
      ['--for <duration>', 'with --drain: stop after this time, even if tasks are ready'],
      ['--schedules', 'with --drain: first fire due schedules, take back lost leases, expire and remove tasks'],
      ['--stuck-after <duration>', 'how long a handler may continue after its signal aborts (default: 30s)'],
      ['--no-exit-when-stuck', 'when all slots are stuck, keep running, and claim nothing until a handler settles'],
      ['--watch', 'restart when the module or its imports change: for development'],
    ],
    examples: [
      'holdfast worker ./tasks.ts --concurrency 20',
      'holdfast worker ./tasks.ts --queue mail --queue reports --drain',
      'holdfast worker ./tasks.ts --stop-timeout 2m --retention completed=7d --retention failed=90d',
      'holdfast worker ./tasks.ts --drain --schedules --for 50s',
      'holdfast worker ./tasks.ts --watch',
    ],
    load: () => import('../commands/worker.ts'),
  },
  SERVE_VERB,
  {
    name: 'stats',
    summary: 'task counts by queue and status',
    examples: ['holdfast stats', 'holdfast stats --json'],
    load: () => import('../commands/stats.ts'),
  },
  {
    name: 'init',
    summary: 'create the store if it does not exist',
    details:
      'On SQLite it creates the file; on PostgreSQL the schema and its tables, which connect does not create.\n' +
      'Safe to repeat: an existing store is not changed, except for an upgrade.\n' +
      'Use --accept-restore after restoring a backup, while no process uses the store: it ensures that no fence is given out twice.',
    args: '[url]',
    options: [['--accept-restore', 'continue with a store that was restored from a backup']],
    examples: [
      'holdfast init sqlite:./holdfast.db',
      'holdfast init postgres://ann@localhost/app?schema=holdfast --json',
    ],
    load: () => import('../commands/init.ts'),
  },
  {
    name: 'migrate',
    summary: 'migrate the tables of a store to this release',
    details:
      'For applications that have no right to change tables and connect with { postgres: { migrate: false } }:\n' +
      'run this as a role with that right, before the new release starts.',
    args: '[url]',
    examples: ['holdfast migrate postgres://owner@localhost/app'],
    load: () => import('../commands/migrate.ts'),
  },
  {
    name: 'bench',
    summary: 'measure how fast the store is from this machine, and the cost of a task on S3',
    details:
      'Runs no-op tasks through a temporary queue, and removes them and the queue, also after SIGINT.\n' +
      'Other queues are not changed, but their workers share the store during the benchmark.',
    options: [
      ['--tasks <n>', 'tasks in one batch (default: 1000)'],
      ['--concurrency <n>', 'handlers that run at the same time (default: 100)'],
      ['--cost', 'on S3: requests per task, and dollars per million tasks'],
    ],
    examples: ['holdfast bench', 'holdfast bench --url s3://my-bucket/jobs --cost --json'],
    load: () => import('../commands/bench.ts'),
  },
  {
    name: 'demo',
    summary: 'a demo of ten seconds: tasks, workers, one worker killed, no task lost',
    details: 'Uses a new store in a temporary folder, unless --url names one.',
    options: [['--keep', 'keep the store afterwards, so that you can inspect it']],
    examples: ['holdfast demo', 'holdfast demo --keep'],
    load: () => import('../commands/demo.ts'),
  },
]
