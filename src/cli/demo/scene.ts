/** The lines of styled text that the demo shows at one moment, computed from the tasks. Does not draw. */
import type { HistoryEntry, Task } from '../../index.ts'
import type { Style } from '../output/render.ts'
import { lostLease } from './account.ts'
import type { Member } from './crew.ts'
import { type DemoInput, KIND_NAMES, KINDS, type KindName, SLOTS } from './kinds.ts'

export type Segment = readonly [text: string, style?: Style]
export type Line = readonly Segment[]

export interface Moment {
  readonly elapsed: number
  readonly tasks: readonly Task[]
  readonly members: readonly Member[]
  readonly killedAt: number | null
  readonly news: readonly Line[]
}

const NAME_WIDTH = 14
const BAR_WIDTH = 40
const NEWS_LINES = 7

export const seconds = (duration: number): string => `${(duration / 1_000).toFixed(1)}s`

export const scene = (moment: Moment): Line[] => {
  const { elapsed, tasks, members, news } = moment
  const ended = tasks.filter(hasEnded).length
  return [
    [],
    [
      [' holdfast demo ', ['bold', 'inverse']],
      [`  ${ended} of ${tasks.length} tasks ended`],
      [`  ${seconds(elapsed)}`, 'dim'],
    ],
    [],
    ...KIND_NAMES.map((kind) =>
      kindLine(
        kind,
        tasks.filter(({ type }) => type === kind),
      ),
    ),
    [],
    ...members.map((member) => memberLine(member, moment)),
    [],
    ...Array.from({ length: NEWS_LINES }, (_, i) => news.at(i - NEWS_LINES) ?? []),
  ]
}

export const hasEnded = ({ status }: Task): boolean => status !== 'pending' && status !== 'running'

/** The parts of a bar, from left to right: meaning and style. */
const PARTS: readonly (readonly [status: string, char: string, style: Style, word: string])[] = [
  ['completed', '█', 'green', 'completed'],
  ['failed', '█', 'red', 'dead'],
  ['expired', '█', 'yellow', 'expired'],
  ['running', '▓', 'cyan', 'running'],
  ['pending', '░', 'dim', ''],
]

const kindLine = (kind: KindName, tasks: readonly Task[]): Line => {
  const counts = PARTS.map(([status]) => tasks.filter((task) => task.status === status).length)
  const widths = shares(counts, BAR_WIDTH)
  const bar = PARTS.map(([, char, style], i): Segment => [char.repeat(widths[i]!), style])
  const words = PARTS.flatMap(([, , style, word], i): Segment[] =>
    counts[i] === 0 || word === '' ? [] : [[`  ${counts[i]} ${word}`, style]],
  )
  return [[` ${kind.padEnd(NAME_WIDTH)}`, 'bold'], ...bar, ...words]
}

/** Divides `width` in proportion to the counts; a count above 0 gets at least one column. */
export const shares = (counts: readonly number[], width: number): number[] => {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return counts.map((_, i) => (i === counts.length - 1 ? width : 0))
  let before = 0
  let used = 0
  return counts.map((count) => {
    before += count
    const upTo = Math.round((before / total) * width)
    const share = upTo - used
    used = upTo
    return share
  })
}

const memberLine = ({ id, state }: Member, { tasks, killedAt }: Moment): Line => {
  const held = tasks.filter(({ lease }) => lease?.workerId === id).length
  const done = tasks.reduce(
    (sum, { history }) => sum + history.filter(({ move, by }) => move === 'complete' && by === id).length,
    0,
  )
  const name: Segment = [` ${id.padEnd(NAME_WIDTH)}`, 'bold']
  if (state === 'killed') {
    const found = tasks.filter(({ history }) => lostLease(history, id) !== null).length
    const holds =
      held > 0 ? `${held} tasks wait for their leases to lapse` : `its ${found} tasks were found and run again`
    return [
      name,
      ['✗ killed (SIGKILL)', ['red', 'bold']],
      [` at ${seconds(killedAt ?? 0)}; ${holds}`, 'red'],
      [`  ${done} done`, 'dim'],
    ]
  }
  if (state === 'gone') return [name, ['○ stopped', 'dim'], [`  ${done} done`, 'dim']]
  return [
    name,
    [`${'●'.repeat(Math.min(held, SLOTS))}${'○'.repeat(Math.max(0, SLOTS - held))}`, 'cyan'],
    [`  holds ${held}, ${done} done`],
  ]
}

/** Text for moves that are not routine; the bars show routine ones. */
const NEWS: Readonly<Record<string, (entry: HistoryEntry, task: Task) => Segment>> = {
  fail: ({ to, at, error, availableAt }) =>
    to === 'failed' ? [`is dead: ${error}`, 'red'] : [`failed: ${error}; retries in ${availableAt! - at}ms`, 'yellow'],
  reschedule: ({ delay, count }) => [
    `got 429 Too Many Requests; sleeps ${seconds(delay!)} in the store (sleep ${count})`,
    'blueBright',
  ],
  expire: () => ['expired before a worker claimed it', 'yellow'],
  'lose-lease': ({ by }) => [`lost its worker: lease expired, found by ${by}, runs again`, ['magenta', 'bold']],
}

export const newsOf = (task: Task, entry: HistoryEntry, startedAt: number): Line | null => {
  if (!Object.hasOwn(NEWS, entry.move)) return null
  const { n } = task.input as DemoInput
  return [newsTime(entry.at - startedAt), [`${task.type} #${n} `, 'bold'], NEWS[entry.move]!(entry, task)]
}

export const newsTime = (elapsed: number): Segment => [` ${seconds(elapsed).padStart(6)}  `, 'dim']

export const introduction = (): Line[] =>
  KIND_NAMES.map((kind) => [
    [` ${kind.padEnd(NAME_WIDTH)}`, 'bold'],
    [String(KINDS[kind].count).padStart(4)],
    [`  ${KINDS[kind].what}`, 'dim'],
  ])
