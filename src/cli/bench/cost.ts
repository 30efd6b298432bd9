/** The cost of requests to S3: counted when sent, at AWS's list prices. */
import type { ConnectOptions } from '../../index.ts'

type CountRequest = NonNullable<NonNullable<ConnectOptions['s3']>['onRequest']>
type Kind = Parameters<CountRequest>[0]

/** US dollars per million; a delete is free. S3 Standard in us-east-1. */
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

  /** The requests per task since the last call, for this many tasks. */
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

export const PRICES_TEXT = `at AWS's list prices: $${PRICES.PUT} per million PUT or LIST, $${PRICES.GET.toFixed(2)} per million GET, DELETE free`
