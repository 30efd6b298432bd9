/** `holdfast tail`: prints every move of every process, one per line, until a signal or a closed pipe ends it. */
import { HoldfastError, parseDuration, parseInstant, type TaskChange } from '../../index.ts'
import { EXIT } from '../output/exit-codes.ts'
import { happened } from '../output/history-line.ts'
import { err, fitted, instant, out, paint, statusStyle } from '../output/render.ts'
import { instantText } from '../program/input.ts'
import { withClient } from '../program/session.ts'
import { type BulkOptions, filterOf } from './shared/bulk.ts'

interface Options extends BulkOptions {
  readonly since?: string
}

export const run = async (_: readonly string[], options: Options): Promise<number> => {
  const filter = filterOf(options)
  const ago = options.since === undefined ? null : sinceOf(options.since)
  return withClient(options, { create: false }, async (client) => {
    const stop = new AbortController()
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())
    const since = ago === null ? {} : { since: typeof ago === 'number' ? (await client.now()) - ago : ago.at }
    const changes = client.changes({ ...filter, ...since, signal: stop.signal })
    if (!options.json) err(`following ${client.address}`)
    for await (const change of changes) out(options.json ? JSON.stringify(facts(change)) : line(change))
    return EXIT.ok
  })
}

/** A duration before now, or an instant. */
const sinceOf = (text: string): number | { readonly at: number } => {
  try {
    return parseDuration(text, '--since')
  } catch {
    try {
      return { at: parseInstant(instantText(text), '--since') }
    } catch {
      const why = `--since: '${text}' is neither a duration such as 10m nor an instant such as 2026-01-28T17:00:00Z`
      throw new HoldfastError('INVALID_OPTION', why, { field: '--since' })
    }
  }
}

const LONGEST_INSTANT = '2026-01-28T17:00:00.000Z'.length
const LONGEST_STATUS = 'completed'.length

const line = ({ entry, task: { id, type, queue } }: TaskChange): string => {
  const style = statusStyle(entry.to)
  const status = entry.to.padEnd(LONGEST_STATUS)
  const when = paint('dim', instant(entry.at).padEnd(LONGEST_INSTANT))
  return `${when}  ${style === null ? status : paint(style, status)}  ${id}  ${fitted(type, 40)}  ${fitted(queue, 24)}  ${happened(entry)}`
}

/** One object per line: the task, then the entry as in history --json. */
const facts = ({ entry, task }: TaskChange): Record<string, unknown> => {
  const entries = task.toJSON()['history'] as readonly Record<string, unknown>[]
  const shown = entries.find(({ n }) => n === entry.n) ?? { ...entry }
  return { id: task.id, type: task.type, queue: task.queue, tags: task.tags, ...shown }
}
