/** Workers killed in the middle of a task, again and again, and what the store and the witnesses say of it afterwards. */
import { connect, silentLogger } from '../../src/index.ts'
import type { TaskRecord } from '../../src/store/store.ts'
import { openAt } from './address.ts'
import { measureLag } from './lag.ts'
import type { Plant } from './planted.ts'
import { type Child, folder, pause, start, until } from './processes.ts'
import { readRecords, violations } from './runs.ts'
import { chance } from './seed.ts'
import { readWitness, readWitnesses, unfinished, type WitnessLine } from './witness.ts'

export const LEASE = 1_000

export interface Campaign {
  /** Where the tasks are: a path, or the URL of a server. */
  readonly address: string
  readonly kills: number
  /** That may be killed; one more never is, because somebody must be there to find what the others held. */
  readonly processes: number
  /** Tasks waiting at any time, so that every process has something to do. */
  readonly backlog: number
  readonly seed: number
  readonly plant?: Plant
}

interface Kill {
  readonly at: number
  /** Begun and not ended when the process died. */
  readonly held: readonly WitnessLine[]
}

export const campaign = async ({ address, kills, processes, backlog, seed, plant = 'none' }: Campaign) => {
  const place = folder()
  const { between, pick } = chance(seed)
  const client = await connect(await openAt(address), { logger: silentLogger })
  const submitted: string[] = []
  const fill = async (): Promise<void> => {
    const { count } = await client.count({ status: 'pending' })
    const shared = { maxRetries: null, retryPolicy: { base: '50ms', max: '200ms' } } as const
    const items = Array.from({ length: Math.max(0, backlog - count) }, () => ({ type: 'work', input: null }))
    for (const result of await client.submitMany(items, shared)) if (result.ok) submitted.push(result.task.id)
  }
  const begin = (): Child =>
    start('worker', {
      file: address,
      folder: place,
      seed: between(0, 1e9),
      concurrency: 4,
      takes: [20, 400],
      leaseTtl: `${LEASE}ms`,
      plant,
    })

  await fill()
  const survivor = begin()
  const children = Array.from({ length: processes }, begin)
  const lag = measureLag(client)
  const killed: Kill[] = []
  while (killed.length < kills) {
    await pause(between(200, 450))
    let busy: Child[] = []
    await until('a process has a task under way', async () => {
      await fill()
      busy = children.filter((child) => child.isAlive && unfinished(readWitness(place, child.pid)).length > 0)
      return busy.length > 0
    })
    const victim = pick(busy)
    const at = Date.now()
    await victim.kill()
    // It may have ended its task just before: then the kill hit nothing, and does not count.
    const held = unfinished(readWitness(place, victim.pid))
    if (held.length > 0) killed.push({ at, held })
    children[children.indexOf(victim)] = begin()
  }
  await until('every task has ended', async () => {
    const counts = await Promise.all(['pending', 'running'].map((status) => client.count({ status })))
    return counts.every(({ count }) => count === 0)
  })
  for (const child of [survivor, ...children]) child.signal('SIGTERM')
  await Promise.all([survivor, ...children].map((child) => child.end()))
  const late = await lag.end()
  await client.close()
  const witness = readWitnesses(place)
  const records = await readRecords(address, submitted)
  const wrong = violations({ submitted, records, witness, leaseTtl: LEASE })
  const byId = new Map(records.flatMap((record) => (record === null ? [] : [[record.id, record] as const])))
  const recoveries = killed.flatMap(({ at, held }) => held.map((line) => recovery(byId.get(line.task!), line, at)))
  return { submitted, killed, records, wrong, recoveries, late }
}

/** How long after the kill the task was pending again; NaN when it never was. */
const recovery = (record: TaskRecord | undefined, { fence }: WitnessLine, killedAt: number): number => {
  const history = record?.history ?? []
  const claims = history.filter(({ move }) => move === 'claim')
  const lost = history.find(({ move, op }) => move === 'lose-lease' && op === claims[fence! - 1]?.op)
  return lost === undefined ? Number.NaN : lost.at - killedAt
}
