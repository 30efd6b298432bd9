/** What requests to S3 cost: counted as they leave, priced as AWS lists them. */
import type { ConnectOptions } from '../../index.ts'

type CountRequest = NonNullable<NonNullable<ConnectOptions['s3']>['onRequest']>
type Kind = Parameters<CountRequest>[0]

/** US dollars for a million; a delete costs nothing. S3 Standard in us-east-1. */
export const PRICES: Requests = { PUT: 5, GET: 0.4, LIST: 5, DELETE: 0 }

export type Requests = Readonly<Record<Kind, number>>

export interface Cost {
  readonly requestsPerTask: Requests
  readonly dollarsPerMillionTasks: number
}

const KINDS = Object.keys(PRICES) as readonly Kind[]

const each = (of: (kind: Kind) => number): Requests =>
  Object.fromEntries(KINDS.map((kind) => [kind, of(kind)])) as Requests

export class Meter {
  #counts = new Map<Kind, number>()

  count: CountRequest = (kind) => {
    this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + 1)
  }

  /** Of so many tasks: what was counted since it was last asked. */
  take(tasks: number): Cost {
    const counts = this.#counts
    this.#counts = new Map()
    const requestsPerTask = each((kind) => (counts.get(kind) ?? 0) / tasks)
    const dollars = KINDS.reduce((sum, kind) => sum + requestsPerTask[kind] * PRICES[kind], 0)
    return { requestsPerTask, dollarsPerMillionTasks: Math.round(dollars * 100) / 100 }
  }
}

/** `3.05 PUT, 0.00 GET, 0.02 LIST, 0.02 DELETE: $15.35 a million` */
export const costText = ({ requestsPerTask, dollarsPerMillionTasks }: Cost): string =>
  `${KINDS.map((kind) => `${requestsPerTask[kind].toFixed(2)} ${kind}`).join(', ')}: $${dollarsPerMillionTasks.toFixed(2)} a million`

export const PRICES_TEXT = `at AWS's list prices: $${PRICES.PUT} for a million PUT or LIST, $${PRICES.GET.toFixed(2)} for a million GET, DELETE free`
