/** The store's time, precise enough to compute views: read occasionally, extrapolated in between. */
import type { Client, Instant } from '../index.ts'

const OLD = 10_000

export const storeNow = (client: Client): (() => Promise<Instant>) => {
  let known: { readonly at: Instant; readonly mono: number } | null = null
  return async () => {
    if (known === null || performance.now() - known.mono > OLD)
      known = { at: await client.now(), mono: performance.now() }
    return known.at + Math.floor(performance.now() - known.mono)
  }
}
