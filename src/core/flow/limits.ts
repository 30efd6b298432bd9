/** The limits of a queue: what a caller may ask for, checked, and what follows from it. */
import { HoldfastError } from '../errors.ts'
import { checkInteger } from '../submission.ts'
import { checkOptionNames } from '../values/option-names.ts'
import { parseRate, type Rate } from './rate.ts'

/** Limits of a queue over all workers. What is left out is not limited. */
export interface LimitOptions {
  /** The most running tasks of the queue, over all workers. */
  readonly concurrency?: number
  /** The most running tasks of one group, over all workers. Groups then take turns. */
  readonly perGroup?: number
  /** Groups take turns within a priority. Default: only with `perGroup` or `ratePerGroup`. */
  readonly fair?: boolean
  /** Starts of the queue in any such time, over all workers: `'60/1m'`. */
  readonly rate?: string
  /** Starts of one group in any such time. */
  readonly ratePerGroup?: string
  /** How many starts of a rate may come at once. Default 1. */
  readonly burst?: number
}

const KNOWN: ReadonlySet<string> = new Set<keyof LimitOptions>([
  'concurrency',
  'perGroup',
  'fair',
  'rate',
  'ratePerGroup',
  'burst',
])

const MOST = 1_000_000

export const checkLimits = (options: LimitOptions): LimitOptions => {
  checkOptionNames(options, KNOWN, 'limit')
  const { concurrency, perGroup, fair, rate, ratePerGroup, burst } = options
  if (concurrency !== undefined) checkPlaces(concurrency, 'concurrency', 'the queue')
  if (perGroup !== undefined) checkPlaces(perGroup, 'perGroup', 'the group')
  if (fair !== undefined && typeof fair !== 'boolean') throw refused('fair', 'must be true or false')
  if (fair === false && (perGroup !== undefined || ratePerGroup !== undefined))
    throw refused('fair', 'cannot be false with perGroup or ratePerGroup: their groups always take turns')
  if (rate !== undefined) parseRate(rate, 'rate')
  if (ratePerGroup !== undefined) parseRate(ratePerGroup, 'ratePerGroup')
  if (burst !== undefined) {
    checkInteger(burst, 'burst', 1, MOST)
    if (rate === undefined && ratePerGroup === undefined) throw refused('burst', 'needs a rate or ratePerGroup')
  }
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
  if (Object.keys(given).length === 0) throw refused('limit', 'names no limit: give at least one, or null for none')
  return given
}

const checkPlaces = (places: number, field: string, what: string): void => {
  if (places === 0) throw refused(field, `must be at least 1: pause ${what} to stop it`)
  checkInteger(places, field, 1, MOST)
}

export const isFair = ({ fair, perGroup, ratePerGroup }: LimitOptions): boolean =>
  fair === true || perGroup !== undefined || ratePerGroup !== undefined

/** A worker claims for free slots only: what it held without starting it would count against the others. */
export const bindsFetchingAhead = ({ concurrency, rate, ratePerGroup }: LimitOptions): boolean =>
  concurrency !== undefined || rate !== undefined || ratePerGroup !== undefined

export interface QueueRates {
  readonly queue: Rate | null
  readonly group: Rate | null
  readonly burst: number
}

export const ratesOf = ({ rate, ratePerGroup, burst = 1 }: LimitOptions): QueueRates => ({
  queue: rate === undefined ? null : parseRate(rate, 'rate'),
  group: ratePerGroup === undefined ? null : parseRate(ratePerGroup, 'ratePerGroup'),
  burst,
})

/** `40 at once, 2 per group, 60/1m` */
export const limitsText = ({ concurrency, perGroup, fair, rate, ratePerGroup, burst }: LimitOptions): string =>
  [
    concurrency === undefined ? null : `${concurrency} at once`,
    perGroup === undefined ? null : `${perGroup} per group`,
    fair === true && perGroup === undefined ? 'groups take turns' : null,
    rate ?? null,
    ratePerGroup === undefined ? null : `${ratePerGroup} per group`,
    burst === undefined ? null : `burst ${burst}`,
  ]
    .filter((part) => part !== null)
    .join(', ')

const refused = (field: string, why: string): HoldfastError =>
  new HoldfastError('INVALID_OPTION', `${field} ${why}`, { field })
