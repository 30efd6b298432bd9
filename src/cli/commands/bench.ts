/** `holdfast bench`: measures how fast the store is from this machine, and what a task costs where requests have a price. */
import { randomUUID } from 'node:crypto'
import { HoldfastError } from '../../index.ts'
import { costText, Meter, PRICES, PRICES_TEXT } from '../bench/cost.ts'
import { type Measured, measure } from '../bench/measure.ts'
import { EXIT } from '../output/exit-codes.ts'
import { out, outJson, paint } from '../output/render.ts'
import { addressOf } from '../program/config.ts'
import { integer } from '../program/input.ts'
import { type GlobalOptions, openClient } from '../program/session.ts'

interface Options extends GlobalOptions {
  readonly tasks?: string
  readonly concurrency?: string
  readonly cost?: boolean
}

const MOST_TASKS = 1_000_000

export const run = async (_: readonly string[], options: Options): Promise<number> => {
  const tasks = within(options.tasks ?? '1000', '--tasks', MOST_TASKS)
  const concurrency = within(options.concurrency ?? '100', '--concurrency', 1_000)
  const meter = options.cost ? await meterFor(options) : null
  const interrupt = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupt.abort())
  const client = await openClient(options, {
    create: false,
    ...(meter === null ? null : { s3: { onRequest: meter.count } }),
  })
  const queue = `bench-${randomUUID()}`
  try {
    const measured = await measure(client, { queue, tasks, concurrency, meter, signal: interrupt.signal })
    if (options.json) outJson({ address: client.address, ...measured, ...(meter === null ? null : { prices: PRICES }) })
    else for (const line of lines(client.address, measured)) out(line)
    return EXIT.ok
  } finally {
    await client.close()
  }
}

const refused = (field: string, why: string): HoldfastError => new HoldfastError('INVALID_OPTION', why, { field })

const within = (text: string, name: string, most: number): number => {
  const number = integer(text)
  if (number >= 1 && number <= most) return number
  throw refused(name, `${name} must be a whole number from 1 to ${most}`)
}

const meterFor = async (options: GlobalOptions): Promise<Meter> => {
  const { value } = await addressOf(options)
  if (/^s3:/i.test(value)) return new Meter()
  throw refused('--cost', '--cost is only for S3, which charges for requests')
}

const lines = (address: string, { tasks, concurrency, cost, ...measured }: Measured): string[] => {
  const { submittedPerSecond, completedPerSecond, submitToStart } = measured
  const number = (value: number): string => paint('bold', value.toLocaleString('en-US'))
  return [
    `${tasks.toLocaleString('en-US')} tasks on ${address}, ${concurrency} at a time, in a temporary queue that has been removed`,
    `submitted  ${number(submittedPerSecond)} tasks/s in a batch`,
    `completed  ${number(completedPerSecond)} tasks/s from the first submit to the last completion`,
    `started    ${number(submitToStart.p50)} ms after submit (p99 ${number(submitToStart.p99)} ms), one after another`,
    ...(cost === undefined
      ? []
      : [
          `a task in a batch   ${costText(cost.batch)}`,
          `a single task       ${costText(cost.alone)}`,
          `under limits        ${costText(cost.limited)} (in a batch, ten tasks of each group, two at once)`,
          PRICES_TEXT,
        ]),
  ]
}
