/** The metrics. Their names are stable, because dashboards and alerts depend on them. */
import { Counter, Gauge, Histogram, type Registry } from '@prometheus-io/client'

const LABELS = ['task_type', 'queue'] as const
type Label = (typeof LABELS)[number]

const COUNTED = {
  submitted: 'Tasks put into the store',
  claimed: 'Claims by workers',
  completed: 'Tasks that completed',
  failed: 'Tasks that failed for good: dead letters',
  retried: 'Runs that failed and will be tried again, and retries by hand',
  rescheduled: 'Durable sleeps',
  expired: 'Tasks that expired before they were claimed',
  cancelled: 'Tasks that were cancelled',
  released: 'Claims given back at shutdown',
} as const

export type Counted = keyof typeof COUNTED

/** From a hundredth of a second to a day. */
const LONG = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600, 21_600, 86_400]
const SHORT = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900]

export interface Instruments {
  readonly counters: Readonly<Record<Counted, Counter<Label>>>
  readonly ttl: Histogram<Label>
  readonly rescheduleDelay: Histogram<Label>
  readonly wait: Histogram<Label>
  readonly duration: Histogram<Label>
  readonly leasesLost: Counter<Label>
  readonly staleWrites: Counter<Label>
  readonly nearExpiration: Gauge<Label>
  readonly stuck: Gauge<Label>
  readonly depth: Gauge<'queue' | 'view'>
  readonly limit: Gauge<'queue' | 'limit'>
  readonly rateLimit: Gauge<'queue' | 'limit'>
  readonly pausedGroups: Gauge<'queue'>
}

export const makeInstruments = (registry: Registry): Instruments => {
  const registers = [registry]
  const counter = (name: string, help: string): Counter<Label> =>
    new Counter({ name, help, labelNames: LABELS, registers })
  const histogram = (name: string, help: string, buckets: number[]): Histogram<Label> =>
    new Histogram({ name, help, labelNames: LABELS, buckets, registers })
  const counters = Object.fromEntries(
    Object.entries(COUNTED).map(([name, help]) => [name, counter(`holdfast_tasks_${name}_total`, help)]),
  ) as Record<Counted, Counter<Label>>
  return {
    counters,
    ttl: histogram('holdfast_task_ttl_seconds', 'Time to live that tasks were submitted with', LONG),
    rescheduleDelay: histogram('holdfast_reschedule_delay_seconds', 'Length of durable sleeps', LONG),
    wait: histogram('holdfast_task_wait_seconds', 'From due to claimed', SHORT),
    duration: histogram('holdfast_task_duration_seconds', 'From claimed to the end of the run', SHORT),
    leasesLost: counter('holdfast_leases_lost_total', 'Leases that lapsed: a worker died, or stood still'),
    staleWrites: counter(
      'holdfast_stale_writes_rejected_total',
      'Writes refused because the lease was not the current one',
    ),
    nearExpiration: new Gauge({
      name: 'holdfast_tasks_near_expiration',
      help: 'Pending tasks that expire within 60 s',
      labelNames: LABELS,
      registers,
    }),
    stuck: new Gauge({
      name: 'holdfast_handlers_stuck',
      help: 'Handlers that did not stop at their timeout, cancel or lost lease, and have not settled since',
      labelNames: LABELS,
      registers,
    }),
    depth: new Gauge({
      name: 'holdfast_queue_depth',
      help: 'Tasks by queue and view; large counts are lower bounds',
      labelNames: ['queue', 'view'],
      registers,
    }),
    limit: new Gauge({
      name: 'holdfast_queue_limit',
      help: 'Running tasks that a queue (concurrency) or one group in it (per_group) may have',
      labelNames: ['queue', 'limit'],
      registers,
    }),
    rateLimit: new Gauge({
      name: 'holdfast_queue_rate_limit',
      help: 'Starts per second that a queue (rate) or one group in it (rate_per_group) may have',
      labelNames: ['queue', 'limit'],
      registers,
    }),
    pausedGroups: new Gauge({
      name: 'holdfast_queue_paused_groups',
      help: 'Groups that are paused',
      labelNames: ['queue'],
      registers,
    }),
  }
}
