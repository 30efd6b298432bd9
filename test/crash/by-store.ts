/** The long tiers, by hand: each runs on the stores that `--store` names, one after the other, and prints a row of a table. */
import { GROUNDS, type Ground, type StoreKind } from './interruption-rows.ts'
import { removeFolders } from './processes.ts'

export interface Row {
  readonly cells: readonly (string | number)[]
  readonly violations: readonly string[]
}

export interface Table<Place> {
  readonly columns: readonly string[]
  row(store: StoreKind, place: Place): Promise<Row>
}

interface Removable {
  remove(): Promise<void>
}

type Places<Place> = Readonly<Record<StoreKind, () => Promise<Place>>>

const line = (cells: readonly (string | number)[]): string => `| ${cells.join(' | ')} |\n`

/** Sentences about violations go to the standard error, and make the program fail. */
export const printTable = (wanted: string, table: Table<Ground>): Promise<void> => printTableOf(wanted, GROUNDS, table)

export const printTableOf = async <Place extends Removable>(
  wanted: string,
  places: Places<Place>,
  { columns, row }: Table<Place>,
): Promise<void> => {
  const kinds = Object.keys(places) as StoreKind[]
  const stores = kinds.filter((kind) => wanted === 'all' || wanted === kind)
  if (stores.length === 0) throw new Error(`--store is ${kinds.join(', ')} or all`)
  const heads = ['store', ...columns, 'violations']
  process.stdout.write(line(heads) + line(heads.map(() => '---')))
  for (const store of stores) {
    const place = await places[store]()
    try {
      const { cells, violations } = await row(store, place)
      process.stdout.write(line([store, ...cells, violations.length]))
      for (const violation of violations) process.stderr.write(`  ${violation}\n`)
      if (violations.length > 0) process.exitCode = 1
    } finally {
      await place.remove()
      removeFolders()
    }
  }
}

/** As the campaigns take addresses: a path for SQLite. */
export const freshAddress = async (ground: Ground): Promise<string> => (await ground.fresh()).replace(/^sqlite:/, '')
