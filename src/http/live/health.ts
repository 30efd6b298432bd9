/** What is wrong with the store. One examination serves all viewers: it is made on request and kept for a while. */
import type { Client, Finding, Instant } from '../../index.ts'
import { waitingSince } from './waiting-since.ts'

export interface HealthReport {
  readonly at: Instant
  /** What is not as it should be, the worst first. */
  readonly findings: readonly Finding[]
  /** The task that has waited longest, of the queues that are not paused. */
  readonly oldest: { readonly queue: string; readonly since: Instant } | null
}

const OLD = 5_000
/** An examination rests for this many times as long as it took. */
const REST = 20
/** Only the first of a long list of queues are asked for their oldest task. */
const MOST_QUEUES = 50
const STATS_CAP = 1

export class Health {
  readonly #client: Client
  #known: HealthReport | null = null
  #due = Number.NEGATIVE_INFINITY
  #looking: Promise<HealthReport> | null = null

  constructor(client: Client) {
    this.#client = client
  }

  /** A report that is a little old comes at once, while the next is being made. */
  async read(): Promise<HealthReport> {
    if (performance.now() >= this.#due) {
      this.#looking ??= this.#look()
      this.#looking.catch(() => {})
    }
    return this.#known ?? (await this.#looking!)
  }

  async #look(): Promise<HealthReport> {
    const began = performance.now()
    try {
      const [found, oldest, at] = await Promise.all([
        this.#client.examine({ quick: true }),
        this.#oldest(),
        this.#client.now(),
      ])
      const findings = found
        .filter(({ verdict }) => verdict !== 'ok')
        .sort((a, b) => Number(b.verdict === 'problem') - Number(a.verdict === 'problem'))
      this.#known = { at, findings, oldest }
      return this.#known
    } finally {
      const ended = performance.now()
      this.#due = ended + Math.max(OLD, REST * (ended - began))
      this.#looking = null
    }
  }

  async #oldest(): Promise<HealthReport['oldest']> {
    const queues = (await this.#client.stats({ cap: STATS_CAP })).filter(({ ready, paused }) => ready > 0 && !paused)
    const first = await Promise.all(
      queues.slice(0, MOST_QUEUES).map(async ({ queue }) => {
        const since = await waitingSince(this.#client, { queue })
        return since === null ? [] : [{ queue, since }]
      }),
    )
    return first.flat().sort((a, b) => a.since - b.since)[0] ?? null
  }
}
