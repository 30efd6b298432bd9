/** The family of `holdfast schedule`: its verbs, their options and their examples. */
import type { Verb } from './verbs.ts'

type Options = NonNullable<Verb['options']>

const TIMING: Options = [
  ['--cron <expression>', 'five fields (minute hour day month weekday), six with seconds first, or @daily and similar'],
  ['--timezone <zone>', 'for --cron: an IANA name such as Europe/Berlin (default: UTC)'],
  ['--every <duration>', 'instead of --cron: 30s, 5m, 1h30m'],
  ['--mode <mode>', 'for --every: fixed-rate, or fixed-delay after the end of the last run (default: fixed-rate)'],
]

const POLICY: Options = [
  ['--overlap <overlap>', 'while the last task has not ended: skip the slot, or allow (default: skip)'],
  ['--catch-up <policy>', 'slots missed by downtime: skip, last or all, up to 1000 (default: skip)'],
]

const TASK: Options = [
  ['--queue <queue>', 'the queue of its tasks (default: default)'],
  ['--group <group>', 'whose work its tasks are, for limits and fair shares'],
  ['--priority <n>', '-1000 to 1000, higher first (default: 0)'],
  ['--ttl <duration>', 'its tasks expire if they are not claimed within this time'],
  ['--max-retries <n>', 'retries after the first run, or unlimited (default: 3)'],
  ['--max-attempts <n>', 'instead of --max-retries: runs in all; 0: unlimited'],
  ['--retry-policy <name|json>', 'quick, patient, stubborn, or JSON: see submit --help (default: quick)'],
  ['--max-reschedules <n>', 'durable sleeps, or unlimited (default: unlimited)'],
  ['--timeout <duration>', 'limit on one run, or none (default: 5m)'],
  ['--tag <name=value…>', 'a label of your choice on its tasks'],
]

const VERBS: readonly Verb[] = [
  {
    name: 'create',
    summary: 'create a schedule; it does not fire before its first slot',
    args: '<id>',
    options: [
      ['-t, --type <type>', 'which handler runs its tasks (required)'],
      ['-i, --input <json>', 'their input: JSON, - for standard input, @file (required)'],
      ...TIMING,
      ...POLICY,
      ['--paused', 'do not fire until it is resumed'],
      ...TASK,
    ],
    examples: [
      `holdfast schedule create nightly -t report -i '{}' --cron '30 2 * * *' --timezone Europe/Berlin`,
      `holdfast schedule create poll -t poll -i '{}' --every 5m --mode fixed-delay`,
    ],
    load: () => import('../commands/schedule-create.ts'),
  },
  {
    name: 'update',
    summary: 'change a schedule; omitted options stay as they are',
    details: 'Options of its tasks (--queue to --tag) are changed one by one. New timing counts from now.',
    args: '<id>',
    options: [
      ['-t, --type <type>', 'which handler runs its tasks'],
      ['-i, --input <json>', 'their input: JSON, - for standard input, @file'],
      ...TIMING,
      ...POLICY,
      ...TASK,
    ],
    examples: [
      `holdfast schedule update nightly --cron '0 3 * * *'`,
      `holdfast schedule update nightly --overlap allow`,
    ],
    load: () => import('../commands/schedule-update.ts'),
  },
  {
    name: 'list',
    summary: 'all schedules and when each fires next',
    examples: ['holdfast schedule list', 'holdfast schedule list --json'],
    load: () => import('../commands/schedule-list.ts'),
  },
  {
    name: 'show',
    summary: 'everything about one schedule',
    args: '<id>',
    examples: ['holdfast schedule show nightly'],
    load: () => import('../commands/schedule-show.ts'),
  },
  {
    name: 'next',
    summary: 'the next slots, one per line',
    args: '<id>',
    options: [['--count <n>', 'number of slots, up to 1000 (default: 5)']],
    examples: ['holdfast schedule next nightly --count 10'],
    load: () => import('../commands/schedule-next.ts'),
  },
  {
    name: 'pause',
    summary: 'stop a schedule from firing; slots that pass meanwhile are not caught up',
    args: '<id>',
    examples: ['holdfast schedule pause nightly'],
    load: () => import('../commands/schedule-pause.ts'),
  },
  {
    name: 'resume',
    summary: 'let a paused schedule fire again',
    args: '<id>',
    examples: ['holdfast schedule resume nightly'],
    load: () => import('../commands/schedule-resume.ts'),
  },
  {
    name: 'trigger',
    summary: 'create one task of a schedule now; prints its id',
    args: '<id>',
    examples: ['holdfast schedule trigger nightly'],
    load: () => import('../commands/schedule-trigger.ts'),
  },
  {
    name: 'delete',
    summary: 'delete a schedule; its tasks stay',
    args: '<id>',
    examples: ['holdfast schedule delete nightly'],
    load: () => import('../commands/schedule-delete.ts'),
  },
]

export const SCHEDULE_VERBS: readonly Verb[] = [
  {
    name: 'schedule',
    summary: 'recurring work: create, update, list, show, next, pause, resume, trigger, delete',
    details: 'Every running worker fires due schedules; each slot creates one task.',
    examples: [
      `holdfast schedule create nightly -t report -i '{}' --cron '30 2 * * *' --timezone Europe/Berlin`,
      'holdfast schedule list',
    ],
    verbs: VERBS,
  },
]
