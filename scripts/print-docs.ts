/** Prints docs/lifecycle.md and docs/errors.md from the code, and parts of docs/cli.md and docs/http.md. `--check` fails when a file is stale. */
import { readFileSync, writeFileSync } from 'node:fs'
import { EXIT_CODES } from '../src/cli/exit-codes.ts'
import { CODES } from '../src/core/errors.ts'
import { MOVES } from '../src/core/machine.ts'
import { STATUSES, TERMINAL_STATUSES } from '../src/core/task.ts'
import { VIEW_ALIASES } from '../src/core/views.ts'
import { withPrintedParts } from './print-cli-docs.ts'
import { withPrintedRoutes } from './print-http-docs.ts'

const NOTE = '<!-- Printed from the code by `npm run docs`: edit that, not this. -->'

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')

const MEANING: Readonly<Record<string, string>> = {
  pending: 'Waits in its queue: ready when `availableAt` has come, scheduled until then.',
  running: 'A worker holds it under a lease.',
  completed: 'The handler returned; `output` is stored.',
  failed: 'No retries were left, or none was wanted. This is the dead letter; `retry` and `replay` bring it back.',
  cancelled: 'Somebody cancelled it. Not a failure.',
  expired: 'It was not claimed before `expiresAt`. Not a failure; only archive and remove lead out.',
  archived: 'Ended, and hidden from default lists.',
}

const diagram = (): string => {
  const lines = Object.entries(MOVES).flatMap(([name, { from, to }]) =>
    (from.length === 0 ? ['[*]'] : from).flatMap((start) =>
      name === 'unarchive' ? [] : to.map((end) => `  ${start} --> ${end}: ${name}`),
    ),
  )
  return [
    '```mermaid',
    'stateDiagram-v2',
    '  direction LR',
    ...lines,
    '  archived --> completed: unarchive (to where it came from)',
    '```',
  ].join('\n')
}

const lifecycle = (): string => `${NOTE}

# The life of a task

A task has one of seven stored statuses. Everything else that people ask for (ready, scheduled, retrying, dead) is a view,
computed from the record and the time, so nothing has to be moved when a clock passes.

${table(
  ['status', 'ended?', 'meaning'],
  STATUSES.map((status) => [`\`${status}\``, TERMINAL_STATUSES.includes(status) ? 'yes' : 'no', MEANING[status]!]),
)}

| view | is |
| --- | --- |
| \`ready\` | pending, and \`availableAt\` has come |
| \`scheduled\` | pending, and \`availableAt\` is still to come |
| \`retrying\` | scheduled, with \`retryCount\` over 0 |
| \`dead\` | failed |

Also accepted as filters: ${Object.entries(VIEW_ALIASES)
  .map(([alias, view]) => `\`${alias}\` (${view})`)
  .join(', ')}.

## Moves

Every move adds 1 to \`revision\`, leaves one entry in the history, and is written only if the revision is still the one it
was decided on. A heartbeat is not a move: it writes the lease's end and the progress, and leaves the revision.

${table(
  ['move', 'from', 'to', 'what it does'],
  Object.entries(MOVES).map(([name, { from, to, what }]) => [
    `\`${name}\``,
    from.join(', ') || '(none)',
    to.join(', '),
    what,
  ]),
)}

Removing is not a move: a task that has ended is simply gone.

${diagram()}
`

const errors = (): string => `${NOTE}

# Errors

Holdfast throws one class, \`HoldfastError\`. Branch on \`code\`, never on \`message\`; \`details\` has the facts. What a handler
throws is not an error of Holdfast: it is stored on the task as \`lastError\`.

${table(
  ['code', 'means', 'what to do', 'exit code'],
  Object.entries(CODES).map(([code, { text, fix }]) => [
    `\`${code}\``,
    text,
    fix,
    String(EXIT_CODES[code as keyof typeof EXIT_CODES]),
  ]),
)}
`

const fileOf = (name: string): URL => new URL(`../docs/${name}.md`, import.meta.url)

const isCheck = process.argv.includes('--check')
let stale = 0
for (const [name, text] of [
  ['lifecycle', lifecycle()],
  ['errors', errors()],
  ['cli', withPrintedParts(readFileSync(fileOf('cli'), 'utf8'))],
  ['http', withPrintedRoutes(readFileSync(fileOf('http'), 'utf8'))],
] as const) {
  const file = fileOf(name)
  if (!isCheck) writeFileSync(file, text)
  else if (readFileSync(file, 'utf8') !== text) {
    stale++
    console.error(`docs/${name}.md is stale: run \`npm run docs\``)
  }
}
process.exitCode = stale === 0 ? 0 : 1
