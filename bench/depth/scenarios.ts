/** The other tasks of each scenario, as SQL that multiplies one submitted task: a million submits would take too long. */

/** Tasks of one kind, all alike but for their ids. */
interface Crowd {
  readonly type: string
  readonly count: number
  readonly priority: number
  /** Milliseconds from now. */
  readonly availableIn: number
  readonly expiresIn: number | null
}

export interface Scenario {
  readonly name: string
  readonly what: string
  readonly crowds: readonly Crowd[]
}

export const HANDLED = 'noop'
export const SEED = 'seed'
const HOUR = 3_600_000
const BASELINE = 10_000

const ready = (count: number, type = HANDLED): Crowd => ({
  type,
  count,
  priority: 0,
  availableIn: -HOUR,
  expiresIn: null,
})

/** The first is the baseline. */
export const scenariosOf = (deep: number): readonly Scenario[] => {
  const some = deep / 10
  const written = (count: number): string => count.toLocaleString('en')
  return [
    { name: 'baseline', what: `${written(BASELINE)} pending`, crowds: [ready(BASELINE)] },
    { name: 'deep', what: `${written(deep)} pending`, crowds: [ready(deep)] },
    {
      name: 'other-type',
      what: `${written(deep)} pending of a type that is not handled`,
      crowds: [ready(deep, 'other'), ready(BASELINE)],
    },
    {
      name: 'far-future',
      what: `${written(some)} of higher priority, due in a day`,
      crowds: [{ ...ready(some), priority: 10, availableIn: 24 * HOUR }, ready(BASELINE)],
    },
    {
      name: 'expired',
      what: `${written(some)} of higher priority, expired`,
      crowds: [{ ...ready(some), priority: 10, expiresIn: -1_000 }, ready(BASELINE)],
    },
  ]
}

export interface Dialect {
  readonly table: string
  /** Rows `n` from 1 to `count`. */
  series(count: number): string
  /** Built from an SQL expression for an integer. */
  id(n: string): string
}

/** One statement per crowd. The seed task has a separate type and stays. */
export const crowdStatements = ({ crowds }: Scenario, { table, series, id }: Dialect, now: number): string[] =>
  crowds.map(
    ({ type, count, priority, availableIn, expiresIn }, i) => `
      insert into ${table} (id, queue, type, priority, available_at, expires_at, created_at, updated_at, input, history)
      select ${id(`n + ${i * 100_000_000}`)}, queue, '${type}', ${priority}, ${now + availableIn},
        ${expiresIn === null ? 'null' : now + expiresIn}, created_at, updated_at, input, history
      from ${table}, ${series(count)} where type = '${SEED}'`,
  )
