/** Checks the settings in the address of a store. Unknown ones are refused, because a typo must not silently mean the default. */
import { HoldfastError } from '../errors.ts'
import { nearest } from './option-names.ts'

/** Throws if the address has an unknown setting. `address` contains no secrets. */
export const refuseUnknownSettings = (address: string, given: Iterable<string>, known: readonly string[]): void => {
  for (const name of given) {
    if (known.includes(name)) continue
    const meant = nearest(name, known)
    const all = known.length === 0 ? 'it takes none' : `it takes ${known.join(', ')}`
    const hint = meant === null ? all : `did you mean '${meant}'?`
    throw new HoldfastError('INVALID_OPTION', `'${address}' has an unknown setting '${name}': ${hint}`, {
      field: 'url',
    })
  }
}

/** The names of the settings that follow a question mark. */
export const settingsIn = (address: string): Iterable<string> => {
  const query = address.indexOf('?')
  return new URLSearchParams(query === -1 ? '' : address.slice(query)).keys()
}
