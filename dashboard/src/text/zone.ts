/** Local time or UTC, for every time that is shown; stored in this browser. */
import { signal } from '@preact/signals'

const KEPT_AS = 'holdfast-utc'

const kept = (): boolean => {
  try {
    return localStorage.getItem(KEPT_AS) === 'yes'
  } catch {
    // The page may not use storage.
    return false
  }
}

export const isUtc = signal(kept())

export const switchZone = (): void => {
  isUtc.value = !isUtc.value
  try {
    localStorage.setItem(KEPT_AS, isUtc.value ? 'yes' : 'no')
  } catch {
    // Then it lasts until the page is closed.
  }
}

/** Formats in the timezone of a schedule. A browser that does not know it shows UTC. */
export const inZone = (options: Intl.DateTimeFormatOptions, timeZone: string): Intl.DateTimeFormat => {
  try {
    return new Intl.DateTimeFormat('en-GB', { ...options, timeZone })
  } catch {
    return new Intl.DateTimeFormat('en-GB', { ...options, timeZone: 'UTC' })
  }
}

/** Formats in the zone that is chosen now. */
export const zoned = (options: Intl.DateTimeFormatOptions): { readonly format: (at: number) => string } => {
  const local = new Intl.DateTimeFormat('en-GB', options)
  const utc = new Intl.DateTimeFormat('en-GB', { ...options, timeZone: 'UTC' })
  return { format: (at) => (isUtc.value ? utc : local).format(at) }
}
