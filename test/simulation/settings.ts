/** What one seed is like: who takes part, how long it lasts, and which faults exist at which rate. */
import type { Random } from '../../src/testing/random.ts'
import type { Kernel } from './kernel.ts'

/** `move`: everything moves from one store to another, both transactional, while workers are live on both. */
export const PROFILES = ['transactional', 's3', 'nats', 'move'] as const
export type Profile = (typeof PROFILES)[number]

/** Faults of single requests are shares of all requests; faults of processes and networks are events per virtual second. */
export const FAULTS = {
  'drop-request': 'request',
  'lose-reply': 'request',
  'late-request': 'request',
  'refuse-connection': 'request',
  /** A proxy sends a request again. Not on SQL, where a connection has state. */
  'duplicate-request': 'request',
  throttle: 'request',
  /** Two writers meet on one key (S3: 409). */
  'conflict-reply': 'request',
  'slow-request': 'request',
  kill: 'event',
  pause: 'event',
  cut: 'event',
  'stall-store': 'event',
  'step-clock': 'event',
  'sleep-machine': 'event',
  'stop-worker': 'event',
  'lose-wakeup': 'request',
  operators: 'event',
} as const satisfies Record<string, 'request' | 'event'>

export type Fault = keyof typeof FAULTS

const NOT_OF_SQL: readonly Fault[] = ['duplicate-request', 'throttle', 'conflict-reply']

const ABSENT: Readonly<Record<Profile, readonly Fault[]>> = {
  transactional: NOT_OF_SQL,
  move: NOT_OF_SQL,
  s3: ['lose-wakeup'],
  nats: ['conflict-reply', 'throttle', 'duplicate-request'],
}

export interface Settings {
  readonly seed: number
  readonly profile: Profile
  /** Milliseconds of virtual time with faults. */
  readonly faultyFor: number
  readonly tasks: number
  readonly workers: number
  readonly concurrency: number
  readonly leaseTtl: number
  readonly pollInterval: number
  /** One way, in milliseconds: the least and the most. */
  readonly latency: readonly [number, number]
  /** After this time a call without a reply fails. */
  readonly deadline: number
  /** The store's time is that of the one machine on which every process runs, as with SQLite. */
  readonly isOneMachine: boolean
  readonly schedules: number
  readonly hasLimits: boolean
  /** Tasks are submitted in a tenth of the time, so that they wait for each other. */
  readonly isRush: boolean
  readonly hasMonitor: boolean
  readonly hasRetention: boolean
  /** Clocks of machines differ by up to this much. */
  readonly skew: number
  readonly drift: number
  /** Absent: 0. */
  readonly faults: Readonly<Record<Fault, number>>
}

/** What a caller of the simulator may take away, to find out what a violation needs. */
export interface Reduction {
  readonly without?: readonly Fault[]
  readonly tasks?: number
  readonly workers?: number
  readonly schedules?: number
  readonly faultyFor?: number
  readonly hasLimits?: boolean
  readonly hasRetention?: boolean
  readonly skew?: number
}

const LATENCY: Readonly<Record<Profile, readonly [number, number]>> = {
  transactional: [0.2, 12],
  move: [0.2, 12],
  s3: [4, 60],
  nats: [0.3, 6],
}
const DEADLINE: Readonly<Record<Profile, number>> = { transactional: 5_000, move: 5_000, s3: 4_000, nats: 3_000 }
/** A step over a key-value store costs more: one move of a task is several requests. */
const FAULTY_FOR: Readonly<Record<Profile, readonly [number, number]>> = {
  transactional: [15_000, 45_000],
  move: [15_000, 45_000],
  s3: [12_000, 26_000],
  nats: [12_000, 26_000],
}
const LEASES: Readonly<Record<Profile, readonly [number, number]>> = {
  transactional: [1_000, 6_000],
  move: [1_000, 6_000],
  s3: [3_000, 10_000],
  nats: [1_500, 6_000],
}

/** Half of the faults, so that those that hide others are absent in many seeds. */
const drawFaults = (profile: Profile, kernel: Kernel): Record<Fault, number> => {
  const faults = {} as Record<Fault, number>
  for (const [fault, kind] of Object.entries(FAULTS) as [Fault, 'request' | 'event'][]) {
    const random = kernel.random(`swarm ${fault}`)
    const rate = random.next() ** 2
    const exists = random.chance(fault === 'operators' ? 0.8 : 0.5) && !ABSENT[profile].includes(fault)
    faults[fault] = exists ? (kind === 'request' ? 0.005 + rate * 0.12 : 0.02 + rate * 0.35) : 0
  }
  if (faults.operators > 0) faults.operators = Math.max(0.3, faults.operators * 4)
  return faults
}

const between = (random: Random, [least, most]: readonly [number, number]): number =>
  Math.round(least + random.next() * (most - least))

export const drawSettings = (kernel: Kernel, profile: Profile, reduction: Reduction = {}): Settings => {
  const random = kernel.random('settings')
  const faults = drawFaults(profile, kernel)
  for (const fault of reduction.without ?? []) faults[fault] = 0
  const [least, most] = LATENCY[profile]
  const stretch = 0.3 + random.next() ** 2
  const drawn = {
    seed: kernel.seed,
    profile,
    faultyFor: between(random, FAULTY_FOR[profile]),
    tasks: between(random, [12, 40]),
    workers: between(random, [1, 4]),
    concurrency: between(random, [1, 6]),
    leaseTtl: between(random, LEASES[profile]),
    pollInterval: between(random, [200, 2_000]),
    latency: [least, least + (most - least) * stretch] as const,
    deadline: DEADLINE[profile],
    isOneMachine: random.chance(0.5) && profile === 'transactional',
    schedules: random.below(3),
    hasLimits: random.chance(0.5),
    isRush: random.chance(0.3),
    hasMonitor: random.chance(0.3),
    hasRetention: random.chance(0.3),
    skew: random.chance(0.5) ? between(random, [10, 3_600_000]) : 0,
    drift: random.chance(0.5) ? random.next() * 1e-4 : 0,
    faults,
  }
  const { without: _, ...rest } = reduction
  return { ...drawn, ...rest }
}
