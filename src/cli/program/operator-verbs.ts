/** The verbs for operators: dead letters, bulk moves, queues, workers. */
import type { Verb } from './verbs.ts'

const ID = '01a2f7c4-5b1e-7c3d-9f00-2a6d1c0e8b47'
export const EACH = 'Each task has its own result; the exit code is that of the worst.'
const PLAN = 'Without ids it prints a plan and asks for confirmation; without a terminal, it requires --yes.'

type Options = NonNullable<Verb['options']>

const FILTERS: Options = [
  ['--type <type>', 'only this type'],
  ['--queue <queue>', 'only this queue'],
  ['--tag <name=value>', 'only with this label'],
]
/** In these verbs a group is an error. */
const TASK_GROUP: Options[number] = ['--task-group <group>', 'only tasks of this group']
const BULK: Options = [
  ['--yes', 'do not ask for confirmation'],
  ['--dry-run', 'print the plan only'],
]

export const OPERATOR_VERBS: readonly Verb[] = [
  {
    name: 'cancel',
    summary: 'cancel tasks; a running one is asked to stop',
    details: `${EACH}\n${PLAN}`,
    args: '[id...]',
    options: [
      ['--reason <text>', 'kept in the history'],
      ...FILTERS,
      ['--group <group>', 'only tasks of this group'],
      ...BULK,
    ],
    examples: [`holdfast cancel ${ID} --reason 'ordered twice'`, 'holdfast cancel --type send_email --yes'],
    load: () => import('../commands/cancel.ts'),
  },
  {
    name: 'dead',
    summary: 'list dead letters: tasks that failed permanently',
    details:
      'A group is an error: its name and its message without numbers, ids and quoted values, and the same of its causes.',
    options: [
      ['--groups', 'group by error, largest group first'],
      ['--group <group>', 'only this error group: see dead --groups'],
      TASK_GROUP,
      ...FILTERS,
      ['--limit <n>', 'maximum number of tasks, up to 1000 (default: 100)'],
      ['--cursor <cursor>', 'continue where the previous page ended'],
      ['--oldest', 'oldest first'],
    ],
    examples: [
      'holdfast dead --groups',
      'holdfast dead --group 1b2c3d4e5f6',
      'holdfast dead --type send_email --limit 20',
    ],
    load: () => import('../commands/dead.ts'),
  },
  {
    name: 'replay',
    summary: 'run dead letters again, with a new retry budget',
    details: `${EACH}\n${PLAN}\nSIGINT stops it between two batches; the same command continues where it stopped.`,
    args: '[id...]',
    options: [
      ['--group <group>', 'only this error group: see dead --groups'],
      TASK_GROUP,
      ...FILTERS,
      ['--all', 'all dead letters'],
      ['--rate <n>', 'maximum number per second'],
      ['--canary <n>', 'replay this many first; unless all of them complete, leave the others alone'],
      ['--canary-timeout <duration>', 'how long to wait for the canaries (default: 10m)'],
      ['--as-new', 'create new tasks with new ids, without steps; the old ones are archived, and both are linked'],
      ['--fresh', 'forget the recorded steps and the signals: every step runs again'],
      ['--ttl <duration>', 'a new expiry; without one, the tasks do not expire'],
      ['--expires-at <instant>', 'a new expiry as an instant'],
      ...BULK,
    ],
    examples: [
      `holdfast replay ${ID}`,
      'holdfast replay --group 1b2c3d4e5f6 --canary 5 --rate 50',
      'holdfast replay --all --as-new --yes',
    ],
    load: () => import('../commands/replay.ts'),
  },
  {
    name: 'purge',
    summary: 'permanently remove dead letters and their idempotency keys',
    details:
      'It prints a plan and asks for confirmation; without a terminal, it requires --yes.\n' +
      'SIGINT stops it between two batches; the same command continues where it stopped.',
    args: '[id...]',
    options: [
      ['--group <group>', 'only this error group: see dead --groups'],
      TASK_GROUP,
      ...FILTERS,
      ['--all', 'all dead letters'],
      ...BULK,
    ],
    examples: [`holdfast purge ${ID} --yes`, 'holdfast purge --group 1b2c3d4e5f6 --dry-run'],
    load: () => import('../commands/purge.ts'),
  },
  {
    name: 'archive',
    summary: 'hide ended tasks from default lists',
    details: EACH,
    args: '<id...>',
    examples: [`holdfast archive ${ID}`],
    load: () => import('../commands/archive.ts'),
  },
  {
    name: 'unarchive',
    summary: 'restore archived tasks to their previous status',
    details: EACH,
    args: '<id...>',
    examples: [`holdfast unarchive ${ID}`],
    load: () => import('../commands/unarchive.ts'),
  },
  {
    name: 'delete',
    summary: 'permanently remove ended tasks and their idempotency keys',
    details: EACH,
    args: '<id...>',
    examples: [`holdfast delete ${ID}`],
    load: () => import('../commands/delete.ts'),
  },
  {
    name: 'retention',
    summary: 'show how long ended tasks are kept, or set it for every process that uses the store',
    details:
      'Workers, serve and monitor notice a change within ten minutes, and apply it once a minute. A process with its own\nretention uses the shorter of the two.',
    options: [
      ['--completed <duration>', 'how long to keep completed tasks; 0: remove at once'],
      ['--failed <duration>', 'how long to keep dead letters'],
      ['--cancelled <duration>', 'how long to keep cancelled tasks'],
      ['--expired <duration>', 'how long to keep expired tasks'],
      ['--archived <duration>', 'how long to keep archived tasks'],
      ['--off', 'keep everything forever'],
    ],
    examples: ['holdfast retention', 'holdfast retention --completed 7d --failed 90d'],
    load: () => import('../commands/retention.ts'),
  },
  {
    name: 'monitor',
    summary: 'fire schedules, reclaim tasks of dead workers, expire and remove tasks; runs no handlers',
    details:
      'Every worker and `serve` also do this. Start a monitor where tasks run over HTTP, or where workers start and stop often.',
    examples: ['holdfast monitor', 'holdfast monitor --url postgres://localhost/app'],
    load: () => import('../commands/monitor.ts'),
  },
  {
    name: 'prune',
    summary: 'remove tasks that ended long enough ago',
    details:
      'It prints a plan and asks for confirmation; without a terminal, it requires --yes.\nIdempotency keys live until they expire.',
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
    load: () => import('../commands/prune.ts'),
  },
  {
    name: 'tail',
    summary: 'follow the moves of all processes, one line per move',
    details:
      'It polls four times a second, until SIGINT or until its output is closed.\n' +
      'Removals by delete, prune or retention are not shown, nor is the outcome of a task that is removed as soon as it ends.',
    options: [
      ...FILTERS,
      ['--since <time>', 'also earlier moves, since 10m (ago) or an instant such as 2026-01-28T17:00:00Z'],
    ],
    examples: ['holdfast tail', 'holdfast tail --queue mail --since 10m --json'],
    load: () => import('../commands/tail.ts'),
  },
  {
    name: 'pause',
    summary: 'stop claiming tasks from queues; running tasks continue',
    details:
      'Every worker sees it within 5 s.\n' +
      'A pause without an end takes precedence over one with an end; of two with an end, the later one applies.',
    args: '<queue...>',
    options: [
      ['--reason <text>', 'kept with the pause'],
      ['--until <instant>', 'end the pause then: 2026-01-28T17:00:00Z'],
      ['--for <duration>', 'end the pause after this long: 10m'],
      ['--group <group>', 'only the tasks of this group'],
    ],
    examples: [
      "holdfast pause mail --reason 'the provider is down'",
      'holdfast pause mail --for 10m',
      'holdfast pause mail --group acme',
    ],
    load: () => import('../commands/pause.ts'),
  },
  {
    name: 'resume',
    summary: 'claim tasks from paused queues again',
    details: 'A queue that an unfinished move has paused is not resumed: run that move again.',
    args: '<queue...>',
    options: [
      ['--force', 'also resume a queue that a move has paused: its tasks may then run in both stores'],
      ['--group <group>', 'only the pause of this group'],
    ],
    examples: ['holdfast resume mail', 'holdfast resume mail --group acme'],
    load: () => import('../commands/resume.ts'),
  },
  {
    name: 'limit',
    summary: 'limit a queue over all workers: running tasks, places per group, starts per time',
    details:
      'The given limits replace all earlier limits of the queue; --none removes them. Without options it prints the limits of the queue, or of all queues.\n' +
      'Every worker sees them within 5 s. docs/flow-control.md explains what each one promises.',
    args: '[queue]',
    options: [
      ['--concurrency <n>', 'running tasks of the queue'],
      ['--per-group <n>', 'running tasks of one group; groups take turns'],
      ['--fair', 'groups take turns, without a limit for each'],
      ['--rate <count/duration>', 'starts of the queue: 60/1m'],
      ['--rate-per-group <count/duration>', 'starts of one group: 10/1s'],
      ['--burst <n>', 'starts of a rate that may come at once (default: 1)'],
      ['--none', 'remove all limits of the queue'],
    ],
    examples: [
      'holdfast limit mail --concurrency 40 --per-group 2',
      'holdfast limit mail --rate 60/1m',
      'holdfast limit mail --none',
      'holdfast limit',
    ],
    load: () => import('../commands/limit.ts'),
  },
  {
    name: 'workers',
    summary: 'list live workers and what they serve',
    details: 'A worker without a heartbeat for 30 s is not listed.',
    examples: ['holdfast workers', 'holdfast workers --json'],
    load: () => import('../commands/workers.ts'),
  },
  {
    name: 'doctor',
    summary: 'check the health of the store and its workers, and say how to fix problems',
    details:
      'Checks versions, durability, rights, damage, clocks, long transactions, dead rows, workers, queues, leases and schedules, and changes nothing.\n' +
      'On SQLite, --repair-clock corrects dates in the future that a process with a wrong clock has written; stop that process first.\n' +
      'It exits with 6 if there is a problem; with warnings only, it exits with 0.',
    options: [['--repair-clock', 'correct the dates of a process with a wrong clock, then check']],
    examples: ['holdfast doctor', 'holdfast doctor --json', 'holdfast doctor --repair-clock'],
    load: () => import('../commands/doctor.ts'),
  },
  {
    name: 'verify',
    summary: 'check every history in the store, and the logs of witnesses, for broken promises',
    details:
      'Reads everything page by page, and changes nothing. Without logs it checks only what histories show: numbering, moves, leases, retries,\n' +
      'keys, times, schedules. docs/reliability.md explains how workers and producers write logs, and what each line of the report means.\n' +
      'It exits with 6 if a promise was broken.',
    options: [
      ['--witness <path…>', 'logs that openWitness wrote: a file, or a folder of them'],
      ['--drained', 'all work is over: every task must have ended'],
      ['--all-submitted', 'the logs contain every submission: a task that is in none of them is a violation'],
      ['--kept <duration>', 'ended tasks are removed after this time (default: the retention of the store)'],
      ['--recovery <duration>', 'the task of a dead process must continue within this time'],
      ['--deadline <duration>', 'a call must end within this time (default: 1m)'],
      ['--clock-bound <duration>', 'how much the clocks of the machines may differ (default: 1s)'],
    ],
    examples: [
      'holdfast verify',
      'holdfast verify --witness ./witness --kept 7d',
      'holdfast verify --witness ./witness --drained --all-submitted --json',
    ],
    load: () => import('../commands/verify.ts'),
  },
  {
    name: 'config',
    summary: 'show where settings come from',
    details:
      'A file holdfast.config.ts, .js (its default export) or .json in the current folder may name the store, and the options of each verb:\n' +
      '  { "url": "sqlite:./holdfast.db", "worker": { "concurrency": 20, "queue": ["mail"] } }\n' +
      'Variables do the same: HOLDFAST_URL, HOLDFAST_WORKER_CONCURRENCY=20. A flag takes precedence over a variable, and a variable over the file.',
    examples: ['holdfast config show', 'holdfast config show worker --concurrency 5'],
    verbs: [
      {
        name: 'show',
        summary: 'show the store and every setting from a variable or the file, with its source; passwords are omitted',
        details: 'With a verb, also the settings that have their default. Flags of the verb may follow.',
        args: '[verb...]',
        passesFlags: true,
        examples: [
          'holdfast config show',
          'holdfast config show worker --concurrency 5',
          'holdfast config show schedule create --json',
        ],
        load: () => import('../commands/config-show.ts'),
      },
    ],
  },
  {
    name: 'completions',
    summary: 'print a completion script for a shell',
    settings: false,
    args: '<shell>',
    examples: ['holdfast completions bash > holdfast.bash', 'holdfast completions zsh', 'holdfast completions fish'],
    load: () => import('../commands/completions.ts'),
  },
]
