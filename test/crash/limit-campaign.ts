/** Workers under limits that are killed, stopped past their lease and robbed of replies: whether more runs than may, at any moment. */
import { connect, silentLogger } from '../../src/index.ts'
import type { TaskRecord } from '../../src/store/store.ts'
import { openAt } from './address.ts'
import type { Plant } from './planted.ts'
import { type Child, folder, pause, start, until } from './processes.ts'
import { readRecords } from './runs.ts'
import { chance } from './seed.ts'
import { readWitnesses, type WitnessLine } from './witness.ts'

const LEASE = 1_500
const STANDSTILL = 120_000

export interface LimitCampaign {
  readonly address: string
  /** Tasks that wait while there are faults to come. */
  readonly backlog: number
  readonly groups: number
  readonly kills: number
  readonly stops: number
  readonly processes: number
  readonly seed: number
  readonly plant?: Plant
  /** Called between two faults: for faults of the server. */
  readonly alsoBreak?: () => Promise<void>
}

/** Places per group by queue; the last has a limit for the queue as a whole. */
const PER_GROUP = { one: 1, two: 2, seven: 7 } as const
const WHOLE = { queue: 'whole', concurrency: 7 } as const
const QUEUES: readonly string[] = [...Object.keys(PER_GROUP), WHOLE.queue]

export interface LimitOutcome {
  readonly submitted: number
  readonly completed: number
  readonly runs: number
  readonly kills: number
  readonly stops: number
  /** The most that ran at once, by queue: of one group, or of the queue. */
  readonly most: Readonly<Record<string, number>>
  readonly violations: readonly string[]
}

export const limitCampaign = async (plan: LimitCampaign): Promise<LimitOutcome> => {
  const { address, backlog, groups, processes, seed, plant = 'none', alsoBreak } = plan
  const place = folder()
  const { between, pick } = chance(seed)
  const client = await connect(await openAt(address), { logger: silentLogger })
  for (const [queue, perGroup] of Object.entries(PER_GROUP)) await client.queue(queue).limit({ perGroup })
  await client.queue(WHOLE.queue).limit({ concurrency: WHOLE.concurrency })
  const submitted: string[] = []
  const fill = async (): Promise<void> => {
    const { count } = await client.count({ status: 'pending' })
    const items = Array.from({ length: Math.max(0, backlog - count) }, (_, i) => {
      const queue = QUEUES[i % QUEUES.length]!
      // So that a group meets a limit of 7 too, half of the tasks there are of one group.
      const last = queue === 'seven' && between(0, 1) === 0 ? 0 : groups - 1
      return { type: 'work', input: null, queue, group: `group-${between(0, last)}` }
    })
    const shared = { maxRetries: null, retryPolicy: { base: '20ms', max: '100ms' } } as const
    for (const result of await client.submitMany(items, shared)) if (result.ok) submitted.push(result.task.id)
  }
  await fill()

  const begin = (): Child =>
    start('worker', {
      file: address,
      folder: place,
      seed: between(0, 1e9),
      concurrency: 8,
      takes: [5, 80],
      leaseTtl: `${LEASE}ms`,
      queues: QUEUES,
      plant,
    })
  /** However slow the machine is, as long as tasks end. */
  const drained = async (): Promise<void> => {
    let [fewest, since] = [Infinity, performance.now()]
    const isDone = async (): Promise<boolean> => {
      const { count } = await client.count({ status: ['pending', 'running'] })
      if (count < fewest) [fewest, since] = [count, performance.now()]
      if (performance.now() - since > STANDSTILL) throw new Error(`${count} tasks are left, and none ends any more`)
      return count === 0
    }
    await until('every task has ended', isDone, Infinity, 500)
  }
  const survivor = begin()
  const children = Array.from({ length: processes - 1 }, begin)
  const killedAt = new Map<number, number>()
  let stops = 0
  await Promise.all(children.map((child) => child.heard('ready')))
  while (killedAt.size < plan.kills || stops < plan.stops) {
    await pause(between(50, 200))
    await fill()
    await alsoBreak?.()
    const victim = pick(children)
    if (stops < plan.stops && (killedAt.size >= plan.kills || between(0, 1) === 0)) {
      stops++
      victim.signal('SIGSTOP')
      await pause(LEASE + between(200, 900))
      victim.signal('SIGCONT')
    } else {
      const at = Date.now()
      await victim.kill()
      killedAt.set(victim.pid, at)
      children[children.indexOf(victim)] = begin()
    }
  }
  await drained()
  for (const child of [survivor, ...children]) child.signal('SIGTERM')
  await Promise.all([survivor, ...children].map((child) => child.end()))
  await client.close()
  const records = (await readRecords(address, submitted)).filter((record) => record !== null)
  const witness = readWitnesses(place)
  const { most, violations } = check(records, witness, killedAt)
  return {
    submitted: submitted.length,
    completed: records.filter(({ status }) => status === 'completed').length,
    runs: witness.filter(({ what }) => what === 'start').length,
    kills: killedAt.size,
    stops,
    most,
    violations,
  }
}

interface Interval {
  readonly from: number
  readonly to: number
}

/** A run counts while its code ran under a lease that was its own. */
const intervalOf = (
  { history }: TaskRecord,
  begun: WitnessLine,
  ended: WitnessLine | undefined,
  killed: number | undefined,
): Interval => {
  const claim = history.findIndex(({ move }, i) => move === 'claim' && nthClaim(history, i) === begun.fence)
  const over = claim === -1 ? undefined : history.slice(claim + 1).find(({ move }) => move !== 'request-cancel')
  return { from: begun.at, to: Math.min(ended?.at ?? Infinity, killed ?? Infinity, over?.at ?? Infinity) }
}

const nthClaim = (history: TaskRecord['history'], at: number): number =>
  history.slice(0, at + 1).filter(({ move }) => move === 'claim').length

const check = (
  records: readonly TaskRecord[],
  witness: readonly WitnessLine[],
  killedAt: ReadonlyMap<number, number>,
): { most: Record<string, number>; violations: string[] } => {
  const byId = new Map(records.map((record) => [record.id, record]))
  const runOf = ({ task, fence }: WitnessLine): string => `${task}/${fence}`
  const ends = new Map(witness.filter(({ what }) => what === 'end').map((line) => [runOf(line), line]))
  const lines = new Map<string, Interval[]>()
  for (const begun of witness.filter(({ what }) => what === 'start')) {
    const record = byId.get(begun.task!)
    if (record === undefined) continue
    const name = record.queue === WHOLE.queue ? WHOLE.queue : `${record.queue}/${record.group}`
    const interval = intervalOf(record, begun, ends.get(runOf(begun)), killedAt.get(begun.pid))
    lines.set(name, [...(lines.get(name) ?? []), interval])
  }
  const most: Record<string, number> = {}
  const violations: string[] = []
  for (const [name, intervals] of lines) {
    const queue = name.split('/')[0]!
    const allowed = queue === WHOLE.queue ? WHOLE.concurrency : PER_GROUP[queue as keyof typeof PER_GROUP]
    const atOnce = mostAtOnce(intervals)
    most[queue] = Math.max(most[queue] ?? 0, atOnce)
    if (atOnce > allowed) violations.push(`${atOnce} tasks of ${name} ran at once, ${allowed} may`)
  }
  return { most, violations }
}

/** Ends come before starts of the same millisecond. */
const mostAtOnce = (intervals: readonly Interval[]): number => {
  const events = intervals
    .filter(({ from, to }) => from < to)
    .flatMap(({ from, to }) => [
      { at: from, change: 1 },
      { at: to, change: -1 },
    ])
    .sort((a, b) => a.at - b.at || a.change - b.change)
  let [running, most] = [0, 0]
  for (const { change } of events) {
    running += change
    most = Math.max(most, running)
  }
  return most
}
