/**
 * Prints docs/lifecycle.md and docs/errors.md from the code, docs/reference from the built types, the list of decisions, and parts of other pages. `--check` fails if a
 * file is stale.
 */
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { EXIT_CODES } from '../src/cli/output/exit-codes.ts'
import { CODES } from '../src/core/errors.ts'
import { MOVES } from '../src/core/machine.ts'
import { STATUSES, TERMINAL_STATUSES } from '../src/core/task.ts'
import { VIEW_ALIASES } from '../src/core/views.ts'
import { titleOf } from './markdown.ts'
import { apiPages } from './print-api-docs.ts'
import { withPrintedParts } from './print-cli-docs.ts'
import { withPrintedRoutes } from './print-http-docs.ts'

const NOTE = '<!-- Printed from the code by `npm run docs`: edit that, not this. -->'

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')

const MEANING: Readonly<Record<string, string>> = {
  pending: 'Waits in its queue: scheduled until `availableAt`, then ready.',
  running: 'A worker holds it under a lease.',
  completed: 'The handler returned; `output` is stored.',
  failed: 'No retries were left, or the error was permanent. This is a dead letter; `retry` and `replay` run it again.',
  cancelled: 'It was cancelled. Not a failure.',
  expired: 'It was not claimed before `expiresAt`. Not a failure; it can only be archived or removed.',
  archived: 'Ended, and hidden from default lists.',
}

/** One row for each status that a move leaves. */
const ways = Object.entries(MOVES).flatMap(([name, { ways, what }]): readonly Way[] =>
  name === 'submit'
    ? [{ name, from: null, to: ['pending'], what }]
    : Object.entries(ways).map(([from, to]) => ({ name, from, to: to as readonly string[], what })),
)

interface Way {
  readonly name: string
  readonly from: string | null
  readonly to: readonly string[]
  readonly what: string
}

const diagram = (): string =>
  [
    '```mermaid',
    'stateDiagram-v2',
    '  direction LR',
    ...ways.flatMap(({ name, from, to }) => to.map((end) => `  ${from ?? '[*]'} --> ${end}: ${name}`)),
    '```',
  ].join('\n')

const lifecycle = (): string => `${NOTE}

# The life of a task

A task has one of seven stored statuses. Other states (ready, scheduled, retrying, parked, dead) are views, computed from the record and the
time, so nothing has to be written when a task becomes due.

${table(
  ['status', 'ended?', 'meaning'],
  STATUSES.map((status) => [`\`${status}\``, TERMINAL_STATUSES.includes(status) ? 'yes' : 'no', MEANING[status]!]),
)}

| view | meaning |
| --- | --- |
| \`ready\` | pending, and \`availableAt\` has passed |
| \`scheduled\` | pending, and \`availableAt\` is in the future |
| \`retrying\` | scheduled, with \`retryCount\` over 0 |
| \`parked\` | pending until the end of a sleep or the signal that its handler waits for ([steps](steps.md)); not scheduled |
| \`dead\` | failed |

Also accepted as filters: ${Object.entries(VIEW_ALIASES)
  .map(([alias, view]) => `\`${alias}\` (${view})`)
  .join(', ')}.

## Moves

Every move adds 1 to \`revision\`, adds one entry to the history (\`step\` and \`signal\` to the journal instead), and is written only if the revision is still the one on which it
was decided. A heartbeat is not a move: it writes the end of the lease and the progress, and does not change the revision.

${table(
  ['move', 'from → to', 'what it does'],
  Object.entries(MOVES).map(([name, { what }]) => [
    `\`${name}\``,
    ways
      .filter((way) => way.name === name)
      .map(({ from, to }) => `${from ?? '(none)'} → ${to.join(', ')}`)
      .join('<br>'),
    what,
  ]),
)}

Removing is not a move: the record of an ended task is deleted.

${diagram()}
`

const errors = (): string => `${NOTE}

# Errors

Holdfast throws one class, \`HoldfastError\`. Branch on \`code\`, never on \`message\`; \`details\` has the facts. An error
that a handler throws is not a Holdfast error: it is stored on the task as \`lastError\`.

${table(
  ['code', 'meaning', 'what to do', 'exit code'],
  Object.entries(CODES).map(([code, { text, fix }]) => [
    `\`${code}\``,
    text,
    fix,
    String(EXIT_CODES[code as keyof typeof EXIT_CODES]),
  ]),
)}
`

/** Decisions are found by their number, which begins their title. */
const decisions = (): string => {
  const folder = fileOf('decisions/0').pathname.replace(/[^/]*$/, '')
  const pages = globSync('0*.md', { cwd: folder }).sort()
  const lines = pages.map((page) => `- [${titleOf(readFileSync(folder + page, 'utf8'))}](${page})`)
  return `${NOTE}

# Decisions

Where an obvious alternative was rejected: what was chosen, why, and what was measured.

${lines.join('\n')}
`
}

const fileOf = (name: string): URL => new URL(`../docs/${name}.md`, import.meta.url)

const { pages, undocumented } = apiPages()
for (const name of undocumented) console.error(`${name} is exported and has no sentence of documentation`)
mkdirSync(fileOf('reference/').pathname.replace(/\.md$/, ''), { recursive: true })

const isCheck = process.argv.includes('--check')
let stale = undocumented.length
for (const [name, text] of [
  ['lifecycle', lifecycle()],
  ['errors', errors()],
  ['decisions/README', decisions()],
  ['cli', withPrintedParts(readFileSync(fileOf('cli'), 'utf8'))],
  ['http', withPrintedRoutes(readFileSync(fileOf('http'), 'utf8'))],
  ['reference/configuration', withPrintedParts(readFileSync(fileOf('reference/configuration'), 'utf8'))],
  ...pages,
] as const) {
  const file = fileOf(name)
  if (!isCheck) writeFileSync(file, text)
  else if (!existsSync(file) || readFileSync(file, 'utf8') !== text) {
    stale++
    console.error(`docs/${name}.md is stale: run \`npm run docs\``)
  }
}
process.exitCode = stale === 0 ? 0 : 1
