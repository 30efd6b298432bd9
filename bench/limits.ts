/** Measures what the limits of a queue cost its claims: in turns against plain claims, and with full groups in front. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { ClaimLimits, GroupRange } from '../src/core/group-turns.ts'
import { complete } from '../src/core/machine.ts'
import { newSubmission } from '../src/core/submission.ts'
import type { TaskRecord } from '../src/core/task.ts'
import { openPostgres } from '../src/store/postgres/store.ts'
import { openSqlite } from '../src/store/sqlite/store.ts'
import type { Store } from '../src/store/store.ts'
import { startPostgres } from '../test/servers/postgres.ts'
import { fieldsOf, runCommand, wholeNumber } from './options.ts'
import type { Field } from './systems.ts'
import { turns } from './turns.ts'

const HELP = `Measures what limits cost: claims of 100 tasks, each followed by the commit of the 100 before, by one process.

  node bench/limits.ts [options]

  --store NAME     sqlite, postgres (starts a temporary server), or all (the default)
  --pairs N        pairs of portions, taking turns (default 15); the median of their ratios counts
  --claims N       claims in one portion (default 20)
  --help           print this help

Ratios are rates: limited to unlimited (wanted: 0.6), with full groups in front to without (wanted: 0.8). Beside the median stand the ratios
between which it lies with 95% confidence, for 15 pairs. On a busy machine, processor time tells more than the time on the clock.
`

const EACH = 100
const GROUPS = 1_000
const PER_GROUP = 2
const WAITING_IN_FULL = 100
/** How long a worker remembers that a group was full. */
const REMEMBERED = 100
const TYPE = 'work'

interface Opened {
  readonly store: Store
  close(): Promise<void>
}

const opened = async (field: Field): Promise<Opened> => {
  if (field === 'sqlite') {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-limits-'))
    const store = await openSqlite(join(folder, 'limits.db'))
    return {
      store,
      close: async () => {
        await store.close()
        rmSync(folder, { recursive: true, force: true })
      },
    }
  }
  const server = await startPostgres()
  const store = await openPostgres(server.url, { create: true })
  return {
    store,
    close: async () => {
      await store.close()
      await server.remove()
    },
  }
}

interface Took {
  readonly wall: number
  readonly processor: number
}

interface Extent {
  readonly pairs: number
  readonly claims: number
}

let made = 0

const fill = async (store: Store, queue: string, count: number, groupOf: (i: number) => string): Promise<void> => {
  const { at } = await store.now()
  for (let from = 0; from < count; from += 1_000) {
    const tasks = Array.from({ length: Math.min(1_000, count - from) }, (_, i): TaskRecord => {
      const id = `01900000-0000-7000-8000-${(++made).toString(16).padStart(12, '0')}`
      const facts = { now: at, id, op: 'fill', by: 'bench' }
      const options = { queue, group: groupOf(from + i) }
      return newSubmission(TYPE, { text: '{"n":1}', encoding: 'json' }, options, facts).task
    })
    await store.insert(
      tasks.map((task) => ({ task })),
      { now: null },
    )
  }
}

/** Claims as a worker does, with the memory of one. */
class Claims {
  readonly #store: Store
  readonly #queue: string
  readonly #isLimited: boolean
  #before: readonly TaskRecord[] = []
  #after: string | null = null
  #passed: readonly GroupRange[] = []
  #passedAt = 0

  constructor(store: Store, queue: string, isLimited: boolean) {
    this.#store = store
    this.#queue = queue
    this.#isLimited = isLimited
  }

  async portion(claims: number): Promise<Took> {
    const start = performance.now()
    const before = process.cpuUsage()
    for (let i = 0; i < claims; i++) await this.#one()
    const { user, system } = process.cpuUsage(before)
    return { wall: performance.now() - start, processor: (user + system) / 1_000 }
  }

  async #one(): Promise<void> {
    const { leased, full = [] } = await this.claim(EACH)
    if (leased.length < EACH) throw new Error(`only ${leased.length} tasks were leased in ${this.#queue}`)
    this.#after = leased.at(-1)!.group
    if (full.length > 0) {
      this.#passed = rangesOf(full, new Set(leased.map(({ group }) => group!)))
      this.#passedAt = Date.now()
    }
    await this.#store.commit(
      this.#before.map((task) =>
        complete(task, { token: task.lease!.token }, { text: 'null', encoding: 'json' }, task.lease!.claimedAt),
      ),
    )
    this.#before = leased
  }

  claim(limit: number) {
    return this.#store.claim({
      queue: this.#queue,
      types: [TYPE],
      limit,
      workerId: 'bench',
      op: `claim-${++made}`,
      leaseTtl: 600_000,
      dueLimit: 100,
      now: null,
      ...(this.#isLimited ? { limits: this.#limits() } : null),
    })
  }

  #limits(): ClaimLimits {
    const passed = Date.now() - this.#passedAt < REMEMBERED ? this.#passed : []
    const each = { perGroup: PER_GROUP, mostEach: PER_GROUP, without: [], only: null }
    return { concurrency: null, notAfter: null, turns: { ...each, after: this.#after, passed } }
  }
}

/** Full groups with no leased one between them are one range. */
const rangesOf = (full: readonly string[], leased: ReadonlySet<string>): GroupRange[] => {
  const ranges: GroupRange[] = []
  let open: { first: string; last: string } | null = null
  for (const group of [...new Set([...full, ...leased])].sort()) {
    if (leased.has(group)) open = null
    else if (open === null) {
      open = { first: group, last: group }
      ranges.push(open)
    } else open.last = group
  }
  return ranges
}

const named = (prefix: string, i: number): string => `${prefix}${String(i % GROUPS).padStart(4, '0')}`

const measure = async (
  what: string,
  { pairs, claims }: Extent,
  [usual, measured]: readonly [Claims, Claims],
): Promise<void> => {
  await usual.portion(5)
  await measured.portion(5)
  const took = new Map<Claims, Took[]>([
    [usual, []],
    [measured, []],
  ])
  for (let pair = 0; pair < pairs; pair++)
    for (const contender of turns([usual, measured], pair)) took.get(contender)!.push(await contender.portion(claims))
  const [ours, theirs] = [took.get(measured)!, took.get(usual)!]
  const ratios = (of: keyof Took): string => {
    const sorted = ours.map((one, pair) => theirs[pair]![of] / one[of]).sort((a, b) => a - b)
    const at = (share: number): string => sorted[Math.round(share * (sorted.length - 1))]!.toFixed(2)
    return `${at(1 / 2)} (${at(3 / 14)} to ${at(11 / 14)})`
  }
  const rate = (portions: readonly Took[]): string =>
    Math.round((pairs * claims * EACH * 1_000) / sum(portions.map(({ wall }) => wall))).toLocaleString('en')
  console.log(
    `${what}: ${ratios('wall')}, by processor time of this process ${ratios('processor')}; ${rate(theirs)} and ${rate(ours)} tasks/s`,
  )
}

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0)

const compare = async (field: Field, extent: Extent): Promise<void> => {
  const { store, close } = await opened(field)
  const claims = (queue: string, isLimited = true): Claims => new Claims(store, queue, isLimited)
  try {
    const count = (extent.pairs * extent.claims + 10) * EACH
    for (const queue of ['plain', 'limited', 'free']) await fill(store, queue, count, (i) => named('g', i))
    await measure(`${field}, limited to unlimited`, extent, [claims('plain', false), claims('limited')])

    await fill(store, 'crowded', GROUPS * (WAITING_IN_FULL + PER_GROUP), (i) => named('a', i))
    const crowd = claims('crowded')
    for (let full = 0; full < GROUPS * PER_GROUP; ) full += (await crowd.claim(EACH)).leased.length
    await fill(store, 'crowded', count, (i) => named('g', i))
    await measure(`${field}, ${GROUPS} full groups in front to none`, extent, [claims('free'), claims('crowded')])
  } finally {
    await close()
  }
}

await runCommand(async () => {
  const { values } = parseArgs({
    options: {
      store: { type: 'string', default: 'all' },
      pairs: { type: 'string', default: '15' },
      claims: { type: 'string', default: '20' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(HELP)
  const [pairs, claims] = [wholeNumber(values.pairs, '--pairs'), wholeNumber(values.claims, '--claims')]
  for (const field of fieldsOf(values.store)) await compare(field, { pairs, claims })
})
