/** The current location: `#/tasks?status=dead`. In the hash, so that links work under any path. */
import { signal } from '@preact/signals'

export interface Route {
  /** '' for the overview. */
  readonly page: string
  /** The part after the page: the id of a task. */
  readonly rest: string
  readonly query: Readonly<Record<string, string>>
}

const parse = (hash: string): Route => {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2)
  const [page = '', ...rest] = path.split('/')
  return { page, rest: decoded(rest.join('/')), query: Object.fromEntries(new URLSearchParams(query)) }
}

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

export const route = signal<Route>(parse(location.hash))

let known = location.hash

/** The browser tells of a new location a little later: a key may be pressed before. */
export const syncRoute = (): void => {
  if (location.hash === known) return
  known = location.hash
  route.value = parse(known)
  scrollTo(0, 0)
}

addEventListener('hashchange', syncRoute)

/** Undefined and empty values are omitted from the URL. */
export const hrefOf = (path: string, query: Readonly<Record<string, string | undefined>> = {}): string => {
  const given = Object.entries(query).filter((pair): pair is [string, string] => Boolean(pair[1]))
  return `#/${path}${given.length === 0 ? '' : `?${new URLSearchParams(given)}`}`
}

export const taskHref = (id: string): string => `#/tasks/${encodeURIComponent(id)}`

export const go = (href: string): void => {
  location.hash = href
  syncRoute()
}
