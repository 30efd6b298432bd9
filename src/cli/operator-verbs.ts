/** The verbs of whoever runs it at night: dead letters, bulk moves, queues, workers. */
import type { Verb } from './verbs.ts'

const ID = '01a2f7c4-5b1e-7c3d-9f00-2a6d1c0e8b47'
const EACH = 'Each task has its own result; the exit code is that of the worst.'
const PLAN = 'Without ids it prints a plan first and asks; where nobody can be asked, it needs --yes.'

type Options = NonNullable<Verb['options']>

const FILTERS: Options = [
  ['--type <type>', 'only this type'],
  ['--queue <queue>', 'only this queue'],
  ['--tag <name=value>', 'only with this label'],
]
const BULK: Options = [
  ['--yes', 'do not ask'],
  ['--dry-run', 'print the plan only'],
]

export const OPERATOR_VERBS: readonly Verb[] = [
  {
    name: 'cancel',
    summary: 'cancel tasks; a running one is asked to stop',
    details: `${EACH}\n${PLAN}`,
    args: '[id...]',
    options: [['--reason <text>', 'kept in the history'], ...FILTERS, ...BULK],
    examples: [`holdfast cancel ${ID} --reason 'ordered twice'`, 'holdfast cancel --type send_email --yes'],
    load: () => import('./commands/cancel.ts'),
  },
  {
    name: 'dead',
    summary: 'the dead letters: tasks that failed for good',
    details:
      'A group is what they died of: the name of the error, and its message without numbers, ids and quoted text.',
    options: [
      ['--groups', 'by what they died of, the largest group first'],
      ...FILTERS,
      ['--limit <n>', 'at most so many, up to 1000 (default: 100)'],
      ['--cursor <cursor>', 'go on where the page before ended'],
      ['--oldest', 'oldest first'],
    ],
    examples: ['holdfast dead --groups', 'holdfast dead --type send_email --limit 20'],
    load: () => import('./commands/dead.ts'),
  },
  {
    name: 'replay',
    summary: 'run dead letters again, with a new budget of retries',
    details: `${EACH}\n${PLAN}\nSIGINT stops it between two batches; the same command goes on where it ended.`,
    args: '[id...]',
    options: [
      ['--group <group>', 'those that died of this: see dead --groups'],
      ...FILTERS,
      ['--all', 'all dead letters'],
      ['--rate <n>', 'at the most so many a second'],
      ['--canary <n>', 'so many first; unless all of them complete, the others are left alone'],
      ['--canary-timeout <duration>', 'how long to wait for the canaries (default: 10m)'],
      ['--as-new', 'as new tasks under new ids; the old ones are archived, linked both ways'],
      ['--ttl <duration>', 'a new expiry: without one, they do not expire'],
      ['--expires-at <instant>', 'a new expiry as an instant'],
      ...BULK,
    ],
    examples: [
      `holdfast replay ${ID}`,
      'holdfast replay --group 1b2c3d4e5f6 --canary 5 --rate 50',
      'holdfast replay --all --as-new --yes',
    ],
    load: () => import('./commands/replay.ts'),
  },
  {
    name: 'purge',
    summary: 'remove dead letters, and their idempotency keys, for good',
    details:
      'It prints a plan first and asks; where nobody can be asked, it needs --yes.\n' +
      'SIGINT stops it between two batches; the same command goes on where it ended.',
    args: '[id...]',
    options: [
      ['--group <group>', 'those that died of this: see dead --groups'],
      ...FILTERS,
      ['--all', 'all dead letters'],
      ...BULK,
    ],
    examples: [`holdfast purge ${ID} --yes`, 'holdfast purge --group 1b2c3d4e5f6 --dry-run'],
    load: () => import('./commands/purge.ts'),
  },
  {
    name: 'archive',
    summary: 'hide ended tasks from default lists',
    details: EACH,
    args: '<id...>',
    examples: [`holdfast archive ${ID}`],
    load: () => import('./commands/archive.ts'),
  },
  {
    name: 'unarchive',
    summary: 'bring archived tasks back to what they were',
    details: EACH,
    args: '<id...>',
    examples: [`holdfast unarchive ${ID}`],
    load: () => import('./commands/unarchive.ts'),
  },
  {
    name: 'delete',
    summary: 'remove ended tasks, and their idempotency keys, for good',
    details: EACH,
    args: '<id...>',
    examples: [`holdfast delete ${ID}`],
    load: () => import('./commands/delete.ts'),
  },
  {
    name: 'prune',
    summary: 'remove tasks that ended long enough ago',
    details:
      'It prints a plan first and asks; where nobody can be asked, it needs --yes.\nIdempotency keys live on to their own end.',
    options: [
      ['--older-than <duration>', 'ended at least this long ago: 7d, 12h (required)'],
      ['--status <status…>', 'completed, failed, cancelled, expired (default: these four), archived'],
      ['--queue <queue>', 'only this queue'],
      ...BULK,
    ],
    examples: [
      'holdfast prune --older-than 7d --yes',
      'holdfast prune --older-than 30d --status failed,archived --queue mail --dry-run',
    ],
    load: () => import('./commands/prune.ts'),
  },
  {
    name: 'tail',
    summary: 'follow what happens, in this and every other process, a line a move',
    details:
      'It looks four times a second, until SIGINT or until nobody reads what it prints.\n' +
      'What is removed leaves no trace: neither delete nor prune is told, nor the end of a task that is not kept.',
    options: [
      ...FILTERS,
      ['--since <time>', 'also what has happened since: 10m (ago), or an instant such as 2026-01-28T17:00:00Z'],
    ],
    examples: ['holdfast tail', 'holdfast tail --queue mail --since 10m --json'],
    load: () => import('./commands/tail.ts'),
  },
  {
    name: 'pause',
    summary: 'stop taking tasks from queues; what runs goes on',
    details: 'Every worker sees it within 5 s.',
    args: '<queue...>',
    options: [['--reason <text>', 'kept with the pause']],
    examples: ["holdfast pause mail --reason 'the provider is down'"],
    load: () => import('./commands/pause.ts'),
  },
  {
    name: 'resume',
    summary: 'take tasks from paused queues again',
    details: 'A queue that an unfinished move holds is not resumed: run that move again.',
    args: '<queue...>',
    options: [['--force', 'also one that a move holds: its tasks may then run in both stores']],
    examples: ['holdfast resume mail'],
    load: () => import('./commands/resume.ts'),
  },
  {
    name: 'workers',
    summary: 'which workers are alive, and what they serve',
    details: 'A worker that has not been heard of for 30 s is not listed.',
    examples: ['holdfast workers', 'holdfast workers --json'],
    load: () => import('./commands/workers.ts'),
  },
  {
    name: 'doctor',
    summary: 'is the store well, and those who use it? Says how to mend what is not',
    details:
      'Looks at versions, durability, rights, damage, clocks, long transactions, dead rows, workers, queues, leases and schedules, and changes nothing.\n' +
      'It ends with 6 when there is a problem; a warning alone ends with 0.',
    examples: ['holdfast doctor', 'holdfast doctor --json'],
    load: () => import('./commands/doctor.ts'),
  },
  {
    name: 'config',
    summary: 'where settings come from',
    details:
      'A file holdfast.config.ts, .js (its default export) or .json in the current folder may name the store: { "url": "sqlite:./holdfast.db" }.\n' +
      'A flag counts before the variable HOLDFAST_URL, the variable before the file.',
    examples: ['holdfast config show'],
    verbs: [
      {
        name: 'show',
        summary: 'every setting, its value, and who said so; passwords are left out',
        examples: ['holdfast config show', 'holdfast config show --json'],
        load: () => import('./commands/config-show.ts'),
      },
    ],
  },
  {
    name: 'completions',
    summary: 'print what makes a shell complete our verbs and options',
    args: '<shell>',
    examples: ['holdfast completions bash > holdfast.bash', 'holdfast completions zsh', 'holdfast completions fish'],
    load: () => import('./commands/completions.ts'),
  },
]
