/** A move between two stores with live workers on both, killed at every named point and run again; and what must be true then. */
import { spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Client, connect, type Duration, silentLogger, type Task } from '../../src/index.ts'
import { openAt } from './address.ts'
import type { Death, MoverPlan } from './children/mover.ts'
import { Child, folder, pause, start, until } from './processes.ts'
import { readRecords } from './runs.ts'
import type { Chance } from './seed.ts'
import { readWitnesses, type WitnessLine } from './witness.ts'

/** Every write of a move, before and after it: what comes late in a move stands late in the list. */
export const DEATHS: readonly Death[] = [
  { side: 'from', call: 'documents.put move/out', when: 'after' },
  { side: 'to', call: 'documents.put move/in', when: 'after' },
  { side: 'to', call: 'documents.put pause/default', when: 'after' },
  { side: 'to', call: 'documents.put move/in', when: 'after', nth: 2 },
  { side: 'to', call: 'insert', when: 'after' },
  { side: 'from', call: 'commit', when: 'before' },
  { side: 'from', call: 'commit', when: 'after' },
  { side: 'to', call: 'remove', when: 'before' },
  { side: 'to', call: 'remove', when: 'after' },
  { side: 'to', call: 'insert', when: 'after', nth: 2 },
  { side: 'from', call: 'commit', when: 'after', nth: 2 },
  { side: 'from', call: 'documents.put schedule/tick', when: 'before' },
  { side: 'from', call: 'documents.put schedule/tick', when: 'after' },
  { side: 'to', call: 'documents.put schedule/tick', when: 'before' },
  { side: 'to', call: 'documents.put schedule/tick', when: 'after' },
  { side: 'to', call: 'detachedKeys.put', when: 'after' },
  { side: 'to', call: 'documents.delete pause/default', when: 'before' },
  { side: 'to', call: 'documents.delete pause/default', when: 'after' },
  { side: 'to', call: 'documents.delete move/in', when: 'after' },
  { side: 'from', call: 'documents.delete move/out', when: 'before' },
]

export const EVERY = 200

export interface MoveCampaign {
  readonly from: string
  readonly to: string
  readonly deaths: readonly Death[]
  readonly tasks?: number
  readonly plant?: MoverPlan['plant']
  /** The command line, killed so many times at instants chosen by chance, and then run to its end. */
  readonly program?: { readonly kills: number; readonly chance: Chance }
}

export interface MoveOutcome {
  readonly wrong: string[]
  readonly killed: number
  readonly stolen: number
  readonly ranOn: { readonly from: number; readonly to: number }
  readonly slots: number
}

export const moveCampaign = async ({
  from,
  to,
  deaths,
  tasks = 1_500,
  plant,
  program,
}: MoveCampaign): Promise<MoveOutcome> => {
  const place = folder()
  const [here, there] = [join(place, 'from'), join(place, 'to')]
  for (const path of [here, there]) mkdirSync(path)
  const options = { logger: silentLogger, name: 'test' }
  const [old, fresh] = [await connect(await openAt(from), options), await connect(await openAt(to), options)]
  const { ids, keys, tried } = await furnish(old, tasks, deaths.length > 10 ? '25s' : '8s')

  const workers = [
    start('worker', { file: from, folder: here, seed: 1, concurrency: 3, takes: [100, 250], leaseTtl: '5s' }),
    start('worker', { file: to, folder: there, seed: 2, concurrency: 20, takes: [10, 40], leaseTtl: '5s' }),
  ]
  await Promise.all(workers.map((worker) => worker.heard('ready')))
  await until('work is under way', () => readWitnesses(here).length > 0)
  await until('both have registered', async () => (await old.workers()).length + (await fresh.workers()).length === 2)

  let killed = 0
  let stolen = 0
  const run = async (dies?: Death): Promise<Child> => {
    const mover = start('mover', { from, to, ...(dies && { dies }), ...(plant && { plant }) })
    await mover.end(120_000)
    if (mover.said('dies').length + mover.said('moved').length !== 1)
      throw new Error(`the mover that was to die at ${JSON.stringify(dies)} did neither: ${mover.stderr}`)
    killed += mover.said('dies').length
    for (const line of mover.said('stole')) stolen += line['tasks'] as number
    return mover
  }
  for (const death of deaths) await run(death)
  if (program === undefined) await run()
  else killed += await runProgram(from, to, program)

  const unfinished = { status: ['ready', 'retrying', 'running'] }
  await until('the new store has run its tasks', async () => (await fresh.count(unfinished)).count === 0, 120_000)
  for (const worker of workers) worker.signal('SIGTERM')
  await Promise.all(workers.map((worker) => worker.end()))
  const witness = { from: readWitnesses(here), to: readWitnesses(there) }
  const wrong = [
    ...(await wrongTasks(from, to, ids, witness)),
    ...(await wrongKeys(fresh, keys)),
    ...wrongFences(tried, [...witness.from, ...witness.to]),
    ...(await wrongLeftovers(from, to)),
  ]
  const slots = await slotsOf([old, fresh])
  wrong.push(...wrongSlots(slots))
  await Promise.all([old.close(), fresh.close()])
  const ran = (lines: readonly WitnessLine[]): number => new Set(lines.map(({ task }) => task)).size
  return { wrong, killed, stolen, ranOn: { from: ran(witness.from), to: ran(witness.to) }, slots: slots.length }
}

const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))

/** How often it was killed: a run that was faster than its death is the last. */
const runProgram = async (
  from: string,
  to: string,
  { kills, chance: { between } }: NonNullable<MoveCampaign['program']>,
): Promise<number> => {
  const addresses = [from, to].map((address) => (address.includes(':') ? address : `sqlite:${address}`))
  for (let killed = 0; ; killed++) {
    const args = ['--no-warnings', MAIN, 'move', ...addresses, '--live']
    const child = new Child(spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] }))
    if (killed < kills) await Promise.race([child.ended, pause(between(400, 2_500))])
    if (killed < kills && child.isAlive) {
      await child.kill()
      continue
    }
    const { code } = await child.end(120_000)
    if (code !== 0) throw new Error(`holdfast move ended with ${code}: ${child.stderr}`)
    return killed
  }
}

/** Tasks with and without keys, some that have been tried already, a key that has outlived its task, a schedule. */
const furnish = async (client: Client, count: number, backoff: Duration) => {
  const keys = new Map<string, string>()
  const results = await client.submitMany(
    Array.from({ length: count }, (_, n) => ({
      type: 'work',
      input: n,
      ...(n % 3 === 0 ? { idempotencyKey: `key-${n}` } : null),
    })),
  )
  const made = results.map((result) => (result.ok ? result.task : null)!)
  for (const { id, idempotencyKey } of made) if (idempotencyKey !== null) keys.set(idempotencyKey, id)
  const tried: string[] = []
  for (let n = 0; n < 20; n++) {
    const retryPolicy = { base: backoff, multiplier: 1, max: backoff, jitter: 'none' } as const
    const { id } = await client.submit('work', `tried ${n}`, { priority: 1, retryPolicy })
    await (await client.claim(id, { workerId: 'test' })).fail(new Error('once'))
    tried.push(id)
  }
  const { id } = await client.submit('work', 'pruned', { idempotencyKey: 'orphan' })
  await client.cancel(id)
  await client.prune({ olderThan: 0, status: 'cancelled' })
  keys.set('orphan', id)
  await client.schedules.create({
    id: 'tick',
    type: 'work',
    input: 'tick',
    every: { milliseconds: EVERY },
    overlap: 'allow',
    catchUp: 'all',
  })
  return { ids: [...made.map((task: Task) => task.id), ...tried], keys, tried }
}

type Witnesses = { readonly from: readonly WitnessLine[]; readonly to: readonly WitnessLine[] }

const wrongTasks = async (from: string, to: string, ids: readonly string[], witness: Witnesses): Promise<string[]> => {
  const [left, arrived] = await Promise.all([readRecords(from, ids), readRecords(to, ids)])
  const ran = {
    from: Map.groupBy(witness.from, ({ task }) => task),
    to: Map.groupBy(witness.to, ({ task }) => task),
  }
  return ids.flatMap((id, i) => {
    const wrong: string[] = []
    const [here, there] = [left[i], arrived[i]]
    const lines = [...(ran.from.get(id) ?? []), ...(ran.to.get(id) ?? [])].sort((a, b) => a.mono - b.mono)
    const fences = lines.filter(({ what }) => what === 'start').map(({ fence }) => fence!)
    if (there === null || there === undefined) return [`task ${id} is lost`]
    if (here?.history.at(-1)?.move !== 'depart') wrong.push(`task ${id} is ${here?.status} in the old store`)
    if (ran.from.has(id) && ran.to.has(id)) wrong.push(`task ${id} ran on both sides: fences ${fences}`)
    if (fences.some((fence, at) => at > 0 && fence <= fences[at - 1]!)) wrong.push(`task ${id}: fences ${fences}`)
    if (lines.filter(({ what }) => what === 'end').length !== 1) wrong.push(`task ${id} ended not once`)
    if (there.status !== 'completed') wrong.push(`task ${id} is ${there.status} in the new store`)
    else if (JSON.parse(there.output!).fence !== there.attempts) wrong.push(`task ${id} has the output of another run`)
    return wrong
  })
}

const wrongKeys = async (client: Client, keys: ReadonlyMap<string, string>): Promise<string[]> => {
  const wrong: string[] = []
  for (const [key, id] of keys) {
    const input = key === 'orphan' ? 'pruned' : Number(key.slice(4))
    const again = await client.submit('work', input, { idempotencyKey: key })
    if (!again.deduplicated || again.id !== id) wrong.push(`key ${key} does not stand for its task any more`)
  }
  return wrong
}

/** What was tried before the move runs under a higher fence, wherever that is, and whoever claimed it in between. */
const wrongFences = (tried: readonly string[], lines: readonly WitnessLine[]): string[] =>
  tried.flatMap((id) => {
    const run = lines.find(({ task, what }) => task === id && what === 'start')
    return (run?.fence ?? 0) > 1 ? [] : [`task ${id} was tried once and ran under fence ${run?.fence}`]
  })

const wrongLeftovers = async (from: string, to: string): Promise<string[]> => {
  const wrong: string[] = []
  for (const address of [from, to]) {
    const store = await openAt(address, false)
    for (const prefix of ['move/', 'pause/'])
      for (const { name } of await store.documents.list(prefix)) wrong.push(`${name} is left in ${address}`)
    await store.close()
  }
  return wrong
}

const STATUSES = ['pending', 'running', 'completed', 'failed', 'cancelled', 'expired', 'archived']

/** The slots for which there is a task, over both stores; a task that is in both counts once. */
const slotsOf = async (clients: readonly Client[]): Promise<number[]> => {
  const made = new Map<string, number>()
  for (const client of clients) {
    let cursor: string | null = null
    do {
      const page: Awaited<ReturnType<Client['list']>> = await client.list({
        status: STATUSES,
        limit: 1_000,
        ...(cursor === null ? null : { cursor }),
      })
      for (const { id, scheduleId, idempotencyKey } of page.tasks)
        if (scheduleId !== null) made.set(id, Date.parse(idempotencyKey!.slice(-24)))
      cursor = page.cursor
    } while (cursor !== null)
  }
  return [...made.values()].sort((a, b) => a - b)
}

const wrongSlots = (slots: readonly number[]): string[] =>
  slots.flatMap((slot, i) => {
    const gap = i === 0 ? EVERY : slot - slots[i - 1]!
    return gap === EVERY ? [] : [gap === 0 ? `slot ${slot} has two tasks` : `no task for the slots before ${slot}`]
  })
