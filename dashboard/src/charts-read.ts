/** The charts of the server, read again once per slot. */
import { signal } from '@preact/signals'
import { useResource } from './resource.ts'
import type { Charts } from './types.ts'

export const RANGES = ['5m', '1h', '24h', '7d'] as const
export type Range = (typeof RANGES)[number]

export const RANGE_NAMES: Readonly<Record<Range, string>> = {
  '5m': '5 minutes',
  '1h': '1 hour',
  '24h': '24 hours',
  '7d': '7 days',
}

/** The chosen range, shared by all pages. */
export const range = signal<Range>('5m')

const EVERY: Readonly<Record<Range, number>> = { '5m': 5_000, '1h': 15_000, '24h': 60_000, '7d': 60_000 }

export const useCharts = (
  filter: { readonly queue?: string; readonly type?: string } = {},
  fixed?: Range,
): Charts | null => {
  const chosen = fixed ?? range.value
  return useResource<Charts>('/charts', { query: { range: chosen, ...filter }, every: EVERY[chosen] }).data
}
