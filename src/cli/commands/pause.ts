/** `holdfast pause QUEUE…`: stops workers from claiming tasks; running tasks continue. */
import { type Client, type Duration, HoldfastError, type Instant, parseDuration, parseInstant } from '../../index.ts'
import { EXIT } from '../output/exit-codes.ts'
import { instant, out, outJson, printable } from '../output/render.ts'
import { given, instantText } from '../program/input.ts'
import { type GlobalOptions, withClient } from '../program/session.ts'

interface Options extends GlobalOptions {
  readonly reason?: string
  readonly until?: string
  readonly group?: string
  readonly for?: Duration
}

export const run = (queues: readonly string[], options: Options): Promise<number> =>
  withClient(options, { create: false }, async (client) => {
    const until = await endOf(client, options)
    for (const name of queues)
      await client.queue(name).pause({
        ...given('reason', options.reason),
        ...given('group', options.group),
        ...(until === null ? null : { until }),
      })
    if (options.json) outJson(queues.map((queue) => ({ queue, ...given('group', options.group), paused: true })))
    else
      for (const name of queues)
        out(`${pausedName(name, options.group)} paused${until === null ? '' : ` until ${instant(until)}`}`)
    return EXIT.ok
  })

/** `mail`, or `mail, group acme`. */
export const pausedName = (queue: string, group: string | undefined): string =>
  group === undefined ? queue : `${queue}, group ${printable(group)}`

/** By the store's clock. null: it must be resumed. */
const endOf = async (client: Client, { until, for: duration }: Options): Promise<Instant | null> => {
  if (until !== undefined && duration !== undefined)
    throw new HoldfastError('INVALID_OPTION', '--until and --for cannot be combined: give one of them', {
      field: '--until',
    })
  if (duration !== undefined) return (await client.now()) + parseDuration(duration, '--for')
  return until === undefined ? null : parseInstant(instantText(until), '--until')
}
