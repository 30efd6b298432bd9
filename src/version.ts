/** The version of this package, for registrations, the command line and the HTTP API. */
import { readFileSync } from 'node:fs'

const read = (): string => {
  try {
    return String(JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version)
  } catch {
    // A bundler has moved this file away from package.json.
    return 'unknown'
  }
}

let known: string | undefined

/** The version of the package. */
export const version = (): string => {
  known ??= read()
  return known
}
