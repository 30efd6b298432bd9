/** `holdfast retention`: shows or sets how long ended tasks are kept, for every process that uses the store. */
import { formatDuration, HoldfastError, parseDuration, type RetentionOptions } from '../../index.ts'
import { EXIT } from '../output/exit-codes.ts'
import { out, outJson } from '../output/render.ts'
import { type GlobalOptions, withClient } from '../program/session.ts'

const STATUSES = ['completed', 'failed', 'cancelled', 'expired', 'archived'] as const

type Options = GlobalOptions & { readonly off?: boolean } & {
  readonly [Status in (typeof STATUSES)[number]]?: string
}

export const run = (_: readonly string[], options: Options): Promise<number> =>
  withClient(options, { create: false }, async (client) => {
    const given = STATUSES.filter((status) => options[status] !== undefined)
    if (options.off && given.length > 0)
      throw new HoldfastError('INVALID_OPTION', '--off removes all settings: omit the durations', {
        field: '--off',
      })
    if (options.off) await client.retention.set(null)
    else if (given.length > 0) {
      const ages = given.map((status) => [status, durationOf(options[status]!, `--${status}`)] as const)
      await client.retention.set({ ...(await client.retention.get()), ...Object.fromEntries(ages) })
    }
    const kept = await client.retention.get()
    if (options.json) outJson(kept ?? {})
    else for (const line of lines(kept)) out(line)
    return EXIT.ok
  })

const durationOf = (text: string, field: string): string | 0 => {
  if (text === '0') return 0
  parseDuration(text, field)
  return text
}

const lines = (kept: RetentionOptions | null): readonly string[] => {
  const entries = Object.entries(kept ?? {})
  if (entries.length === 0) return ['ended tasks are kept forever']
  return entries.map(([status, age]) => {
    const length = parseDuration(age, status)
    return length === 0 ? `${status}: removed at once` : `${status}: removed after ${formatDuration(length)}`
  })
}
