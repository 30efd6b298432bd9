/** The tasks of a cell, each derived from its number, so every process knows them without communication. */
import { hash } from '../hash.ts'
import { payload } from '../system.ts'

/** How the tasks of a cell differ from each other. */
export interface Shape {
  readonly types: number
  readonly queues: number
  /** Priorities, failures, expiry, delays and large payloads, as in a mixed deployment. */
  readonly isMixed: boolean
}

export interface Input {
  readonly n: number
  /** The handler throws on the first attempt. */
  readonly fails?: true
  /** Microseconds of the monotonic clock, which all processes of a Linux machine share, right before the submit. */
  readonly at?: number
}

export interface Task {
  readonly type: string
  readonly queue: string
  readonly input: Input
  /** 0 to 2; higher ones run first. */
  readonly priority: number
  readonly ttlMs: number | null
  readonly delayMs: number | null
}

const HOUR = 3_600_000
const PRIORITIES = 3
/** Percent of the mixed tasks. */
const FAILING = 5
const WITH_TTL = 10
const TOMORROW = 10
const LARGE = 10
const LARGE_TEXT = 'x'.repeat(10_000)

export const typesOf = ({ types }: Shape): string[] => Array.from({ length: types }, (_, n) => `type-${n}`)

export const queuesOf = ({ queues }: Shape): string[] =>
  queues === 1 ? ['default'] : Array.from({ length: queues }, (_, n) => `queue-${n}`)

/** Every queue has tasks of every type. */
export const pairsOf = (shape: Shape): { readonly queue: string; readonly type: string }[] =>
  queuesOf(shape).flatMap((queue) => typesOf(shape).map((type) => ({ queue, type })))

/** Task `n`, from 0. The types take turns, and each type's tasks take turns through the queues. */
export const tasksOf = (shape: Shape): ((n: number) => Task) => {
  const types = typesOf(shape)
  const queues = queuesOf(shape)
  return (n) => {
    const plain: Task = {
      type: types[n % types.length]!,
      queue: queues[Math.floor(n / types.length) % queues.length]!,
      input: payload(n) as Input,
      priority: 0,
      ttlMs: null,
      delayMs: null,
    }
    return shape.isMixed ? mixed(plain, n) : plain
  }
}

const mixed = (plain: Task, n: number): Task => {
  const percent = hash(n) % 100
  return {
    ...plain,
    input: {
      ...plain.input,
      ...(percent < FAILING && { fails: true }),
      ...(hash(n + 1_000_003) % 100 < LARGE && { text: LARGE_TEXT }),
    },
    priority: hash(n + 2_000_003) % PRIORITIES,
    ttlMs: percent >= FAILING && percent < FAILING + WITH_TTL ? HOUR : null,
    delayMs: percent >= 100 - TOMORROW ? 24 * HOUR : null,
  }
}

/** How many of the first `count` tasks must run. */
export const dueOf = (shape: Shape, count: number): number => {
  if (!shape.isMixed) return count
  const taskOf = tasksOf(shape)
  return Array.from({ length: count }, (_, n) => taskOf(n)).filter(({ delayMs }) => delayMs === null).length
}
