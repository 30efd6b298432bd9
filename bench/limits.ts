/** Measures what the limits of a queue cost its claims: in turns against plain claims, and with full groups in front. */
import { parseArgs } from 'node:util'
import type { ClaimLimits, GroupRange } from '../src/core/flow/group-turns.ts'
import { complete } from '../src/core/machine.ts'
import { newSubmission } from '../src/core/submission.ts'
import type { TaskRecord } from '../src/core/task.ts'
import type { Store } from '../src/store/store.ts'
import { openAt } from '../test/crash/address.ts'
import { type Ground, groundOf } from './ground.ts'
import { fieldsOf, runCommand, wholeNumber } from './options.ts'
import { inTurns, ratiosText, type Took, timed } from './pairs.ts'
import type { Field } from './systems.ts'

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

  async some(claims: number): Promise<void> {
    for (let i = 0; i < claims; i++) await this.#one()
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
  ground: Ground,
  { pairs, claims }: Extent,
  [usual, measured]: readonly [Claims, Claims],
): Promise<void> => {
  for (const warmingUp of [usual, measured]) await warmingUp.some(5)
  const portionOf = (some: Claims) => () => timed(ground, () => some.some(claims))
  const took = await inTurns(pairs, portionOf(usual), portionOf(measured))
  const rate = (portions: readonly Took[]): string =>
    Math.round((pairs * claims * EACH * 1_000) / sum(portions.map(({ wall }) => wall))).toLocaleString('en')
  console.log(
    `${what}: ${ratiosText(took.usual, took.measured)}; ${rate(took.usual)} and ${rate(took.measured)} tasks/s`,
  )
}

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0)

const compare = async (field: Field, extent: Extent): Promise<void> => {
  const ground = await groundOf(field)
  const store = await openAt(ground.url.replace(/^sqlite:/, ''))
  const claims = (queue: string, isLimited = true): Claims => new Claims(store, queue, isLimited)
  try {
    const count = (extent.pairs * extent.claims + 10) * EACH
    for (const queue of ['plain', 'limited', 'free']) await fill(store, queue, count, (i) => named('g', i))
    await measure(`${field}, limited to unlimited`, ground, extent, [claims('plain', false), claims('limited')])

    await fill(store, 'crowded', GROUPS * (WAITING_IN_FULL + PER_GROUP), (i) => named('a', i))
    const crowd = claims('crowded')
    for (let full = 0; full < GROUPS * PER_GROUP; ) full += (await crowd.claim(EACH)).leased.length
    await fill(store, 'crowded', count, (i) => named('g', i))
    await measure(`${field}, ${GROUPS} full groups in front to none`, ground, extent, [
      claims('free'),
      claims('crowded'),
    ])
  } finally {
    await store.close()
    await ground.remove()
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
