/**
 * `npm run simulate:mutants`: plants bugs in the bundle of the simulation and runs seeds until an invariant is violated. The bugs are those of test/mutants that
 * test/simulation/mutants.ts names, and some of its own.
 */
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { CORE } from '../test/mutants/core.ts'
import type { Mutant } from '../test/mutants/mutant.ts'
import { RUNTIME } from '../test/mutants/runtime.ts'
import { STORES } from '../test/mutants/stores.ts'
import { bundled } from '../test/simulation/bundle.ts'
import { INVARIANTS, type Invariant } from '../test/simulation/checker/invariants.ts'
import { profileOf, SIMULATED } from '../test/simulation/mutants.ts'
import { runOrders } from '../test/simulation/pool.ts'
import type { Profile } from '../test/simulation/settings.ts'
import type { Order, Outcome } from '../test/simulation/simulation.ts'

const HELP = `Plants bugs in the simulation, and runs seeds of each until an invariant is violated.

  npm run simulate:mutants -- [options]

  --only TEXT   bugs whose entry matches this expression
  --seeds N     at most so many of each (default 300)
  --more N      so many seeds after the first that noticed it, to see which other invariants do (default 0)
  --jobs N      threads (default: one for each core)
  --all         every bug of test/mutants in a file that is simulated
  --help        print this help

Exits with 1 if a bug that should be caught survives.
`

const { values: options } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    seeds: { type: 'string', default: '300' },
    more: { type: 'string', default: '0' },
    jobs: { type: 'string', default: String(availableParallelism()) },
    all: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (options.help) {
  process.stdout.write(HELP)
  process.exit()
}

/** Code that no simulated process runs. */
const NOT_SIMULATED = /^(store\/(sqlite|postgres|threads|sql)|runtime\/(worker\/isolate|transfer)|http|cli)\//

const everyMutant = (): readonly Mutant[] =>
  [...CORE, ...RUNTIME, ...STORES].filter(({ file }) => !NOT_SIMULATED.test(file))

function* seeds(profile: Profile): Generator<Order> {
  for (let seed = 1; seed <= Number(options.seeds); seed++) yield { seed, profile }
}

interface Caught {
  /** Of the first seed that violates an invariant. */
  readonly outcome: Outcome | null
  /** By how many of the seeds that were run. A seed ends at its first violation. */
  readonly seedsOf: ReadonlyMap<Invariant, number>
  /** The simulator itself stopped: the bug throws where nothing catches it, or a seed never ends. */
  readonly broken: string | null
}

/** null: no seed violates an invariant. */
const catches = async (mutant: Mutant): Promise<Caught | null> => {
  const text = await bundled(mutant)
  const seedsOf = new Map<Invariant, number>()
  let first: Outcome | null = null
  let more = Number(options.more)
  try {
    await runOrders({ text }, seeds(profileOf(mutant)), Number(options.jobs), (outcome) => {
      const isLater = first !== null
      for (const invariant of new Set(outcome.violations.map((violation) => violation.invariant)))
        seedsOf.set(invariant, (seedsOf.get(invariant) ?? 0) + 1)
      if (outcome.violations.length > 0 && (first === null || outcome.seed < first.seed)) first = outcome
      return first === null || (isLater ? --more : more) > 0
    })
  } catch (error) {
    return { outcome: first, seedsOf, broken: (error as Error).message.split('\n')[0]! }
  }
  return first === null ? null : { outcome: first, seedsOf, broken: null }
}

const wanted = (options.all ? everyMutant() : SIMULATED).filter((mutant) =>
  new RegExp(options.only).test(JSON.stringify(mutant)),
)
const byInvariant = new Map<Invariant, { all: number; alone: number }>()
let survived = 0
for (const mutant of wanted) {
  const caught = await catches(mutant)
  if (caught === null) {
    survived++
    console.log(`SURVIVED  ${profileOf(mutant)}: ${mutant.file}: ${mutant.breaks}`)
    continue
  }
  const { outcome, seedsOf, broken } = caught
  for (const invariant of seedsOf.keys()) {
    const counted = byInvariant.get(invariant) ?? { all: 0, alone: 0 }
    const isAlone = seedsOf.size === 1 && broken === null
    byInvariant.set(invariant, { all: counted.all + 1, alone: counted.alone + (isAlone ? 1 : 0) })
  }
  const found = [...seedsOf].map(([invariant, times]) => `${invariant} (${times})`).join(', ')
  const how =
    outcome === null
      ? broken
      : `${found}, first in seed ${outcome.seed} of ${outcome.settings.profile}, after ${outcome.steps} steps`
  console.log(`caught    ${mutant.file}: ${mutant.breaks}`)
  console.log(`          by ${how}: ${outcome?.violations[0]?.what.slice(0, 160) ?? ''}`)
}
for (const invariant of Object.keys(INVARIANTS) as Invariant[]) {
  const { all, alone } = byInvariant.get(invariant) ?? { all: 0, alone: 0 }
  console.log(`${invariant}: ${all} bugs, ${alone} of them by it alone`)
}
console.log(`${wanted.length} planted, ${wanted.length - survived} caught, ${survived} survived`)
process.exitCode = survived === 0 ? 0 : 1
