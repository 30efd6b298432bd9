/** Measures what durable steps cost: steps a second, the thousandth step, parked tasks beside those that run, and tasks without steps. */
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { complete } from '../src/core/machine.ts'
import { newSubmission } from '../src/core/submission.ts'
import type { TaskRecord } from '../src/core/task.ts'
import { LAST_INSTANT } from '../src/core/values/instants.ts'
import { type Client, connect, type Handler, silentLogger } from '../src/index.ts'
import type { Store } from '../src/store/store.ts'
import { openAt } from '../test/crash/address.ts'
import { type Ground, groundOf } from './ground.ts'
import { fieldsOf, runCommand, wholeNumber } from './options.ts'
import { inTurns, ratiosText, type Took, timed } from './pairs.ts'
import type { Field } from './systems.ts'

const HELP = `Measures what durable steps cost, with one worker in one process.

  node bench/steps.ts [options]

  --store NAME     sqlite, postgres (starts a temporary server), or all (the default)
  --tasks N        tasks at once (default 100)
  --parked N       parked tasks beside those that are claimed (default 100,000)
  --pairs N        pairs of portions, taking turns (default 15); the median of their ratios counts
  --against DIR    a worktree of an older release: tasks without steps, in turns with it
  --help           print this help

Wanted: 10,000 steps/s; the thousandth step as fast as the first; with parked tasks, and without steps, 0.9 of the rate.
`

const EACH = 100

const perSecond = (count: number, ms: number): string => Math.round((count * 1_000) / ms).toLocaleString('en')

// ── steps a second ───────────────────────────────────────────────────────────────────────────────────────────────

const stepping = async (client: Client, ground: Ground, tasks: number, steps: number): Promise<void> => {
  const handler: Handler = async (_, ctx) => {
    for (let i = 0; i < steps; i++) await ctx.step(`step ${i}`, () => i)
  }
  await client.submitMany(Array.from({ length: tasks }, (_, i) => ({ type: 'stepping', input: i })))
  const worker = client.worker({ concurrency: tasks }).handle('stepping', handler)
  const { wall, processor } = await timed(ground, () => worker.drain().then(() => {}))
  const each = Math.round((processor * 1_000) / (tasks * steps))
  console.log(
    `  ${tasks} tasks of ${steps} steps at once: ${perSecond(tasks * steps, wall)} steps/s; processor ${each} µs a step`,
  )
}

/** The first and the last hundred steps of twenty tasks that have a thousand. */
const thousandth = async (client: Client, ground: Ground): Promise<void> => {
  const [tasks, steps, hundred] = [20, 1_000, 100]
  const marks = new Map<number, Promise<Took>>()
  const start = performance.now()
  const mark = (at: number): void => {
    if (marks.has(at)) return
    const wall = performance.now() - start
    marks.set(
      at,
      ground.processor().then((processor) => ({ wall, processor })),
    )
  }
  const handler: Handler = async (_, ctx) => {
    for (let i = 0; i < steps; i++) {
      if (i % hundred === 0) mark(i)
      await ctx.step(`step ${i}`, () => i)
    }
    mark(steps)
  }
  await client.submitMany(Array.from({ length: tasks }, (_, i) => ({ type: 'long', input: i })))
  await client.worker({ concurrency: tasks }).handle('long', handler).drain()
  const between = async (from: number): Promise<string> => {
    const [before, after] = await Promise.all([marks.get(from)!, marks.get(from + hundred)!])
    const wall = (after.wall - before.wall) / hundred
    const processor = ((after.processor - before.processor) * 1_000) / (hundred * tasks)
    return `${wall.toFixed(2)} ms each, processor ${Math.round(processor)} µs`
  }
  console.log(`  ${tasks} tasks at once: steps 1 to 100 ${await between(0)}; 901 to 1,000 ${await between(900)}`)
}

// ── parked tasks ─────────────────────────────────────────────────────────────────────────────────────────────────

let made = 0

const fill = async (
  store: Store,
  queue: string,
  count: number,
  fields: (task: TaskRecord) => TaskRecord,
): Promise<void> => {
  const { at } = await store.now()
  for (let from = 0; from < count; from += 1_000) {
    const tasks = Array.from({ length: Math.min(1_000, count - from) }, () => {
      const id = `01900000-0000-7000-8000-${(++made).toString(16).padStart(12, '0')}`
      return newSubmission('work', { text: '1', encoding: 'json' }, { queue }, { now: at, id, op: 'fill', by: 'bench' })
    })
    await store.insert(
      tasks.map(({ task }) => ({ task: fields(task) })),
      { now: null },
    )
  }
}

const parkedAsIs = (task: TaskRecord): TaskRecord => ({
  ...task,
  availableAt: LAST_INSTANT,
  attempts: 1,
  revision: 3,
  parked: { step: 'go', kind: 'signal', signal: 'go', until: null },
  hasJournal: true,
  journal: [{ n: 0, kind: 'wait', name: 'go', signal: 'go', until: null, at: task.createdAt, op: 'bench' }],
})

const claimSome = async (store: Store, queue: string, claims: number): Promise<void> => {
  for (let i = 0; i < claims; i++) {
    const { leased } = await store.claim({
      queue,
      types: null,
      limit: EACH,
      workerId: 'bench',
      op: `claim-${++made}`,
      leaseTtl: 60_000,
      dueLimit: 10,
      now: Date.now(),
    })
    if (leased.length < EACH) throw new Error(`only ${leased.length} tasks were leased in ${queue}`)
    await store.commit(
      leased.map((task) =>
        complete(task, { token: task.lease!.token }, { text: 'null', encoding: 'json' }, task.lease!.claimedAt),
      ),
    )
  }
}

const beside = async (store: Store, ground: Ground, parked: number, pairs: number): Promise<void> => {
  const claims = 10
  for (const queue of ['plain', 'crowded']) await fill(store, queue, (pairs + 1) * claims * EACH, (task) => task)
  await fill(store, 'crowded', parked, parkedAsIs)
  for (const queue of ['plain', 'crowded']) await claimSome(store, queue, claims)
  const portionOf = (queue: string) => () => timed(ground, () => claimSome(store, queue, claims))
  const { usual, measured } = await inTurns(pairs, portionOf('plain'), portionOf('crowded'))
  console.log(
    `  claims beside ${parked.toLocaleString('en')} parked tasks to claims without them: ${ratiosText(usual, measured)}`,
  )
}

// ── tasks without steps ──────────────────────────────────────────────────────────────────────────────────────────

/** Submits and runs tasks whose handler does nothing: how long the run took. */
const plainRun = async (client: Client, ground: Ground, tasks: number): Promise<Took> => {
  for (let from = 0; from < tasks; from += 1_000)
    await client.submitMany(Array.from({ length: 1_000 }, (_, i) => ({ type: 'plain', input: i })))
  const worker = client.worker({ concurrency: 100 }).handle('plain', () => null)
  return timed(ground, () => worker.drain().then(() => {}))
}

const against = async (field: Field, folder: string, pairs: number): Promise<void> => {
  const older = (await import(pathToFileURL(join(resolve(folder), 'src/index.ts')).href)) as {
    readonly connect: typeof connect
  }
  const grounds = [await groundOf(field), await groundOf(field)]
  const open = (from: { readonly connect: typeof connect }, { url }: Ground) =>
    from.connect(url, { create: true, logger: silentLogger })
  const [now, then] = [await open({ connect }, grounds[0]!), await open(older, grounds[1]!)]
  const tasks = 5_000
  const ours = () => plainRun(now, grounds[0]!, tasks)
  const theirs = () => plainRun(then, grounds[1]!, tasks)
  await ours()
  await theirs()
  const { usual, measured } = await inTurns(pairs, theirs, ours)
  console.log(`  tasks without steps, this to the older: ${ratiosText(usual, measured)}`)
  for (const client of [now, then]) await client.close()
  for (const ground of grounds) await ground.remove()
}

await runCommand(async () => {
  const { values } = parseArgs({
    options: {
      store: { type: 'string', default: 'all' },
      tasks: { type: 'string', default: '100' },
      parked: { type: 'string', default: '100000' },
      pairs: { type: 'string', default: '15' },
      against: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(HELP)
  const pairs = wholeNumber(values.pairs, '--pairs')
  for (const field of fieldsOf(values.store)) {
    console.log(field)
    if (values.against !== undefined) {
      await against(field, values.against, pairs)
      continue
    }
    const ground = await groundOf(field)
    const store = await openAt(ground.url.replace(/^sqlite:/, ''))
    const client = await connect(store, { logger: silentLogger })
    const tasks = wholeNumber(values.tasks, '--tasks')
    for (let i = 0; i < 3; i++) await stepping(client, ground, tasks, 100)
    await thousandth(client, ground)
    await beside(store, ground, wholeNumber(values.parked, '--parked'), pairs)
    await client.close()
    await ground.remove()
  }
})
