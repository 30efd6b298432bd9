/** The summary of the demo: a table that accounts for every task, and the outcome of those that the killed worker held. */
import { type Column, paint, statusStyle, table } from '../output/render.ts'
import type { Account, KindAccount, Orphan } from './account.ts'
import { seconds } from './scene.ts'
import type { Ending } from './show.ts'

const number = (title: string, of: (row: Row) => number, style: Column<Row>['style'] = () => null): Column<Row> => ({
  title,
  cell: (row) => String(of(row)),
  align: 'right',
  style: (row) => (of(row) === 0 ? 'dim' : (style(row) ?? null)),
})

type Row = Omit<KindAccount, 'kind'> & { readonly kind: string }

const COLUMNS: readonly Column<Row>[] = [
  { title: 'KIND', cell: ({ kind }) => kind, style: () => 'bold' },
  number('SUBMITTED', (row) => row.submitted),
  number(
    'COMPLETED',
    (row) => row.completed,
    () => 'green',
  ),
  number(
    'DEAD',
    (row) => row.dead,
    () => 'red',
  ),
  number(
    'EXPIRED',
    (row) => row.expired,
    () => 'yellow',
  ),
  number(
    'CANCELLED',
    (row) => row.cancelled,
    () => 'magenta',
  ),
  number(
    'LOST',
    (row) => row.missing,
    () => ['red', 'bold'],
  ),
  number('RUNS', (row) => row.attempts),
  number('RETRIES', (row) => row.retries),
  number('SLEEPS', (row) => row.reschedules),
]

export const summaryText = (account: Account, { killed, killedAt }: Ending): string => {
  const rows = [...account.kinds, totalOf(account.kinds)]
  const hasCancelled = rows.some(({ cancelled }) => cancelled > 0)
  const columns = COLUMNS.filter(({ title }) => title !== 'CANCELLED' || hasCancelled)
  const parts = [table(columns, rows)]
  if (killed !== null) parts.push(orphansText(account.orphans, killed, killedAt!))
  return [...parts, verdict(account)].join('\n')
}

const ORPHAN_COLUMNS: readonly Column<Orphan>[] = [
  { title: '  TASK', cell: ({ id }) => `  ${id}`, style: () => 'dim' },
  { title: 'KIND', cell: ({ kind }) => kind, style: () => 'bold' },
  { title: 'FOUND BY', cell: ({ foundBy }) => foundBy },
  { title: 'RAN AGAIN', cell: ({ ranAgainOn }) => (ranAgainOn === null ? 'no' : `on ${ranAgainOn}`) },
  { title: 'NOW', cell: ({ status }) => status, style: ({ status }) => statusStyle(status) },
]

const orphansText = (orphans: readonly Orphan[], killed: string, killedAt: number): string => {
  const held = `${orphans.length} ${orphans.length === 1 ? 'task' : 'tasks'}`
  const text = `${killed} was killed with SIGKILL after ${seconds(killedAt)} while it held ${held}. Their histories:`
  return `${text}\n${table(ORPHAN_COLUMNS, orphans)}`
}

const totalOf = (kinds: readonly KindAccount[]): Row => {
  const sum = (field: Exclude<keyof KindAccount, 'kind'>): number => kinds.reduce((so, kind) => so + kind[field], 0)
  return {
    kind: 'total',
    submitted: sum('submitted'),
    completed: sum('completed'),
    dead: sum('dead'),
    expired: sum('expired'),
    cancelled: sum('cancelled'),
    missing: sum('missing'),
    attempts: sum('attempts'),
    retries: sum('retries'),
    reschedules: sum('reschedules'),
  }
}

const verdict = ({ submitted, accounted, isComplete }: Account): string =>
  isComplete
    ? paint(['green', 'bold'], `nothing lost: ${submitted} submitted, ${accounted} accounted for`)
    : paint(['red', 'bold'], `the sums do not match: ${submitted} submitted, ${accounted} accounted for`)
