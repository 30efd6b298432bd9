/** The verbs that bring tasks from one place to another: a file of lines, or another store. */
import type { Verb } from './verbs.ts'

export const MOVING_VERBS: readonly Verb[] = [
  {
    name: 'export',
    summary: 'everything in the store as lines of JSON',
    details:
      'Tasks with their histories and idempotency keys, schedules, pauses; with a\n' +
      'filter, the tasks that match and nothing else. Each task is as it was at one\n' +
      'moment; while workers run, not all of them at the same one.',
    options: [
      ['--output <file>', 'write to this file, whole or not at all (default: standard output)'],
      ['--status <status…>', 'only tasks of this status or view'],
      ['--type <type>', 'only tasks of this type'],
      ['--queue <queue>', 'only tasks of this queue'],
      ['--tag <name=value>', 'only tasks with this label'],
    ],
    examples: ['holdfast export --output backup.jsonl', 'holdfast export --status dead --type send_email > dead.jsonl'],
    load: () => import('./commands/export.ts'),
  },
  {
    name: 'import',
    summary: 'bring in what export wrote',
    details:
      'FILE may be -, for standard input. Nothing is written before all of it has been\n' +
      'found to be sound. What is in the store already stays as it is, so the same file\n' +
      'may be imported again. A task that was running is pending here, and runs again.',
    args: '<file>',
    examples: [
      'holdfast import backup.jsonl',
      'holdfast export --url sqlite:./a.db | holdfast import - --url sqlite:./b.db',
    ],
    load: () => import('./commands/import.ts'),
  },
  {
    name: 'move',
    summary: 'move everything from one store to another',
    details:
      'Tasks with their histories and fences, idempotency keys, schedules, pauses. TO\n' +
      'is paused until it is done; what stays in FROM is archived with the tag `moved`.\n' +
      'Killed at any point, the same command goes on: no task runs on both sides.\n' +
      'SIGINT stops it between two batches. docs/moving.md tells how to do it while\n' +
      'the application runs.',
    args: '<from> <to>',
    options: [['--live', 'also while workers are live on FROM: what they run is waited for']],
    examples: [
      'holdfast move sqlite:./holdfast.db postgres://ann@localhost/app',
      'holdfast move sqlite:./a.db sqlite:./b.db --live --json',
    ],
    load: () => import('./commands/move.ts'),
  },
]
