/** The filters of the list of tasks. They are part of the URL, so that a link keeps them; the last ones and saved ones are kept in the browser. */
import { signal } from '@preact/signals'
import { hrefOf } from './route.ts'
import { storeTime } from './text/time.ts'

export type Filters = Readonly<Record<string, string>>

export const SINCE: Readonly<Record<string, readonly [name: string, length: number]>> = {
  '5m': ['last 5 minutes', 300_000],
  '1h': ['last hour', 3_600_000],
  '24h': ['last 24 hours', 86_400_000],
  '7d': ['last 7 days', 604_800_000],
}

const KEPT_AS = 'holdfast-filters'

export interface SavedFilter {
  readonly name: string
  readonly filters: Filters
}

const kept = (): readonly SavedFilter[] => {
  try {
    const read = JSON.parse(localStorage.getItem(KEPT_AS) ?? '[]') as unknown
    return Array.isArray(read) ? (read as SavedFilter[]) : []
  } catch {
    // The page may not use storage, or something else is stored there.
    return []
  }
}

export const saved = signal<readonly SavedFilter[]>(kept())

const keep = (all: readonly SavedFilter[]): void => {
  saved.value = all
  try {
    localStorage.setItem(KEPT_AS, JSON.stringify(all))
  } catch {
    // Then they last until the page is closed.
  }
}

export const saveFilter = (name: string, filters: Filters): void =>
  keep([...saved.value.filter((one) => one.name !== name), { name, filters }])

export const forgetFilter = (name: string): void => keep(saved.value.filter((one) => one.name !== name))

/** Another filter begins at the first page. */
export const withFilter = ({ cursor: _, ...filters }: Filters, name: string, value: string | undefined): string =>
  hrefOf('tasks', { ...filters, [name]: value })

/** As the API takes them: `by` sorts the rows of a page only. A time range moves by whole minutes, so that the list is not requested again every second. */
export const queryOf = ({ since, by: _, ...filters }: Filters): Filters => {
  const length = since === undefined ? undefined : SINCE[since]?.[1]
  if (length === undefined) return filters
  const from = Math.floor((storeTime() - length) / 60_000) * 60_000
  return { ...filters, createdAfter: new Date(from).toISOString() }
}

/** The filters with which the list was left: the search key returns to them. */
export const lastFilters = signal<Filters>({})
