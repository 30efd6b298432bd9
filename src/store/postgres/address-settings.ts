/** The settings of a postgres:// address that are Holdfast's, such as `?schema=jobs&listen=false`. The driver does not know them. */
import { HoldfastError } from '../../core/errors.ts'
import { nearest } from '../../core/values/option-names.ts'
import { refuseUnknownSettings, settingsIn } from '../../core/values/settings.ts'
import { withoutSecrets } from './connection.ts'

export interface AddressSettings {
  readonly schema?: string
  readonly listen?: boolean
  readonly prepare?: boolean
  readonly max?: number
}

const NAMES: readonly (keyof AddressSettings)[] = ['schema', 'listen', 'prepare', 'max']
const OURS = new RegExp(`(?<=[?&])(${NAMES.join('|')})=([^&]*)&?`, 'g')

export const addressSettings = (url: string | null): AddressSettings => {
  refuseTypingErrors(url ?? '')
  const given = new Map([...(url ?? '').matchAll(OURS)].map(([, name, value]) => [name!, value!]))
  const [schema, max] = [given.get('schema'), given.get('max')]
  return {
    ...(schema === undefined ? null : { schema }),
    ...switchIn(given, 'listen'),
    ...switchIn(given, 'prepare'),
    ...(max === undefined ? null : { max: Number(max) }),
  }
}

/** What is left for the driver. */
export const forDriver = (url: string): string => url.replace(OURS, '')

/** Refuses settings that are near-misses of ours. All others are passed to the driver, which alone knows what it accepts. */
const refuseTypingErrors = (url: string): void => {
  const meant = [...settingsIn(url)].filter((name) => nearest(name, NAMES) !== null)
  refuseUnknownSettings(withoutSecrets(url), meant, NAMES)
}

const switchIn = (given: ReadonlyMap<string, string>, name: 'listen' | 'prepare'): AddressSettings => {
  const value = given.get(name)
  if (value === undefined) return {}
  if (value === 'true' || value === 'false') return { [name]: value === 'true' }
  throw new HoldfastError('INVALID_OPTION', `${name} in the address is '${value}': it must be true or false`, {
    field: 'url',
  })
}
