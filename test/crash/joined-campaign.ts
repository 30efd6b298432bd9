/** Handlers that end their tasks in their own transactions, killed at any point: how often a row and the end of its task disagree. */
import { connect, silentLogger } from '../../src/index.ts'
import type { JoinedPlan } from './children/joined.ts'
import { type Child, start, until } from './processes.ts'
import { chance } from './seed.ts'

export interface JoinedCampaign {
  readonly address: string
  readonly tasks: number
  readonly seed: number
  readonly deaths: number
  readonly isPlanted?: boolean
  /** Runs a statement in the application's database. */
  query(sql: string): Promise<readonly Readonly<Record<string, unknown>>[]>
}

export interface JoinedOutcome {
  readonly tasks: number
  readonly runs: number
  readonly kills: number
  readonly violations: readonly string[]
}

/** Each kill costs a start and a lease: many tasks take minutes, and on a busy machine more. */
export const patienceFor = (tasks: number): number => Math.max(300_000, tasks * 1_500)

export const joinedCampaign = async (campaign: JoinedCampaign): Promise<JoinedOutcome> => {
  const { address, tasks, seed, deaths, isPlanted = false, query } = campaign
  const { between } = chance(seed)
  const client = await connect(address, { logger: silentLogger })
  await query('create table orders (task text, fence integer)')
  await query('create table charges (task text, fence integer)')
  const options = { maxRetries: null, retryPolicy: { base: '5ms', max: '20ms' } } as const
  const submitted = await client.submitMany(
    Array.from({ length: tasks }, () => ({ type: 'order', input: null })),
    options,
  )
  const ids = submitted.flatMap((result) => (result.ok ? [result.task.id] : []))
  let kills = 0
  let isOver = false
  const keepOne = async (): Promise<void> => {
    while (!isOver) {
      const child: Child = start('joined', { address, seed: between(0, 1e9), deaths, isPlanted } satisfies JoinedPlan)
      running.add(child)
      const { signal } = await child.ended
      running.delete(child)
      if (signal === 'SIGKILL') kills++
      else if (!isOver) throw new Error(`a worker ended by itself: ${child.stderr}`)
    }
  }
  const running = new Set<Child>()
  const kept = Promise.all([keepOne(), keepOne()])
  const isDone = async (): Promise<boolean> =>
    (await client.count({ status: ['pending', 'running'] as never })).count === 0
  await Promise.race([until('all tasks have ended', isDone, patienceFor(tasks), 200), kept])
  isOver = true
  for (const child of running) child.signal('SIGTERM')
  await kept
  const violations: string[] = []
  let runs = 0
  const rows = async (table: string): Promise<Map<string, number[]>> => {
    const found = new Map<string, number[]>()
    for (const { task, fence } of await query(`select task, fence from ${table}`))
      found.set(String(task), [...(found.get(String(task)) ?? []), Number(fence)])
    return found
  }
  const [orders, charges] = [await rows('orders'), await rows('charges')]
  for (const id of ids) {
    const task = await client.get(id)
    runs += task.attempts
    if (task.status !== 'completed') violations.push(`${id} is ${task.status}`)
    const [order, charge] = [orders.get(id) ?? [], charges.get(id) ?? []]
    if (order.length !== 1 || (!isPlanted && order[0] !== task.output))
      violations.push(`${id} completed under ${task.output} has the orders ${order}`)
    if (charge.length !== 1) violations.push(`${id} was charged under ${charge}`)
  }
  await client.close()
  return { tasks: ids.length, runs, kills, violations }
}
