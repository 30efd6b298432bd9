/** The verbs that copy or move tasks to a file or to another store. */
import type { Verb } from './verbs.ts'

export const MOVING_VERBS: readonly Verb[] = [
  {
    name: 'export',
    summary: 'write everything in the store as lines of JSON',
    details:
      'Tasks with their histories and idempotency keys, schedules, pauses; with a\n' +
      'filter, only the matching tasks. Each task is exported as it was at one\n' +
      'moment; while workers run, that moment differs between tasks.',
    options: [
      ['--output <file>', 'write to this file, completely or not at all (default: standard output)'],
      ['--status <status…>', 'only tasks with this status or view'],
      ['--type <type>', 'only tasks of this type'],
      ['--queue <queue>', 'only tasks of this queue'],
      ['--tag <name=value>', 'only tasks with this label'],
    ],
    examples: ['holdfast export --output backup.jsonl', 'holdfast export --status dead --type send_email > dead.jsonl'],
    load: () => import('../commands/export.ts'),
  },
  {
    name: 'import',
    summary: 'import a file that export wrote',
    details:
      'FILE may be -, for standard input. The whole file is checked before anything is\n' +
      'written. Existing tasks are not changed, so the same file may be imported\n' +
      'again. A task that was running becomes pending, and runs again.',
    args: '<file>',
    examples: [
      'holdfast import backup.jsonl',
      'holdfast export --url sqlite:./a.db | holdfast import - --url sqlite:./b.db',
    ],
    load: () => import('../commands/import.ts'),
  },
  {
    name: 'move',
    summary: 'move everything from one store to another',
    details:
      'Tasks with their histories and fences, idempotency keys, schedules, pauses. TO\n' +
      'is paused until the move is done; FROM keeps archived copies with the tag `moved`.\n' +
      'If it is killed at any point, the same command continues: no task runs on both\n' +
      'sides. SIGINT stops it between two batches. docs/moving.md explains how to move\n' +
      'while the application runs.',
    args: '<from> <to>',
    options: [['--live', 'also while workers are live on FROM: running tasks are moved when they end']],
    examples: [
      'holdfast move sqlite:./holdfast.db postgres://ann@localhost/app',
      'holdfast move sqlite:./a.db sqlite:./b.db --live --json',
    ],
    load: () => import('../commands/move.ts'),
  },
]
