/** `holdfast limit QUEUE`: sets, prints or removes the limits of a queue. */
import { type Client, HoldfastError, type LimitOptions, limitsText } from '../../index.ts'
import { EXIT } from '../output/exit-codes.ts'
import { type Column, err, out, outJson, table } from '../output/render.ts'
import { given, integer } from '../program/input.ts'
import { type GlobalOptions, withClient } from '../program/session.ts'

interface Options extends GlobalOptions {
  readonly concurrency?: string
  readonly perGroup?: string
  readonly fair?: boolean
  readonly rate?: string
  readonly ratePerGroup?: string
  readonly burst?: string
  readonly none?: boolean
}

interface Limited {
  readonly queue: string
  readonly limits: LimitOptions | null
}

export const run = ([queue]: readonly string[], options: Options): Promise<number> => {
  const limits = limitsOf(options)
  const isGiven = Object.keys(limits).length > 0
  if (options.none && isGiven) throw refused('--none', 'removes all limits: give no others with it')
  if (queue === undefined && (options.none || isGiven)) throw refused('QUEUE', 'is required: which queue is limited?')
  return withClient(options, { create: false }, async (client) => {
    if (queue === undefined) return print(await all(client), options)
    if (options.none || isGiven) await client.queue(queue).limit(options.none ? null : limits)
    return print([{ queue, limits: await client.queue(queue).limits() }], options)
  })
}

const limitsOf = (options: Options): LimitOptions => ({
  ...given('concurrency', options.concurrency, integer),
  ...given('perGroup', options.perGroup, integer),
  ...given('fair', options.fair),
  ...given('rate', options.rate),
  ...given('ratePerGroup', options.ratePerGroup),
  ...given('burst', options.burst, integer),
})

const all = async (client: Client): Promise<Limited[]> =>
  (await client.stats({ cap: 1 })).flatMap(({ queue, limits }) => (limits === null ? [] : [{ queue, limits }]))

const COLUMNS: readonly Column<Limited>[] = [
  { title: 'QUEUE', cell: ({ queue }) => queue },
  { title: 'LIMITS', cell: ({ limits }) => (limits === null ? 'none' : limitsText(limits)) },
]

const print = (limited: readonly Limited[], { json }: Options): number => {
  if (json) outJson(limited)
  else if (limited.length === 0) err('no queue has limits')
  else out(table(COLUMNS, limited).trimEnd())
  return EXIT.ok
}

const refused = (field: string, why: string): HoldfastError =>
  new HoldfastError('INVALID_OPTION', `${field} ${why}`, { field })
