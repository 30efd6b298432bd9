/**
 * `npm run simulate -- --seeds 500`: runs Holdfast on virtual time under seeded faults, and checks the invariants of docs/simulation.md.
 * Exits with 1 if a seed violates one, or if an interesting state was never reached.
 */
import { createHash } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { bundled, compiled } from '../test/simulation/bundle.ts'
import { INVARIANTS } from '../test/simulation/checker/invariants.ts'
import { runOrders } from '../test/simulation/pool.ts'
import { missingMarks } from '../test/simulation/required-marks.ts'
import { PROFILES, type Profile, type Reduction } from '../test/simulation/settings.ts'
import { shrink } from '../test/simulation/shrink.ts'
import type { Order, Outcome } from '../test/simulation/simulation.ts'

const HELP = `Runs Holdfast on virtual time under seeded faults, and checks the invariants of docs/simulation.md.

  npm run simulate -- [options]

  --seeds N          how many (default 100)
  --seed N           the first (default 1)
  --profile NAME     ${PROFILES.join(', ')}; may be repeated (default: all, in turns)
  --jobs N           processes (default: one for each core)
  --trace            print each step
  --marks            print how often each interesting state was reached
  --isolated         each seed in a process of its own: several times slower, with the same traces
  --reduction JSON   leave faults out, as a shrunk failure prints it
  --help             print this help

Exits with 1 if a seed violates an invariant, or if an interesting state was never reached.
`

const { values: options } = parseArgs({
  options: {
    seeds: { type: 'string', default: '100' },
    seed: { type: 'string', default: '1' },
    profile: { type: 'string', multiple: true, default: [] },
    jobs: { type: 'string', default: String(availableParallelism()) },
    trace: { type: 'boolean', default: false },
    marks: { type: 'boolean', default: false },
    /** Each process evaluates the bundle for itself: several times slower, and must give the same traces. */
    isolated: { type: 'boolean', default: false },
    /** JSON, as a shrunk failure prints it. */
    reduction: { type: 'string', default: '{}' },
    help: { type: 'boolean', default: false },
  },
})
if (options.help) {
  process.stdout.write(HELP)
  process.exit()
}

const profiles = (options.profile.length === 0 ? PROFILES : options.profile) as readonly Profile[]
for (const profile of profiles)
  if (!(PROFILES as readonly string[]).includes(profile))
    throw new Error(`there is no profile '${profile}': ${PROFILES.join(', ')}`)
const first = Number(options.seed)
const count = Number(options.seeds)
const isAlone = count === 1
const reduction = JSON.parse(options.reduction) as Reduction

/** The seeds are shared by the profiles. Without a choice most are of the quickest one. */
const turns: readonly Profile[] =
  options.profile.length === 0 ? ['transactional', 's3', 'transactional', 'nats', 'move'] : profiles

function* orders(): Generator<Order> {
  for (let i = 0; i < count; i++)
    yield { seed: first + i, profile: turns[i % turns.length]!, keepLines: options.trace, reduction }
}

interface Tally {
  seeds: number
  steps: number
  leastSteps: number
  calls: number
  faults: number
  tasks: number
  runs: number
  violated: number
  readonly marks: Map<string, number>
  readonly hashes: string[]
}

const tallies = new Map<Profile, Tally>(
  profiles.map((profile) => [
    profile,
    {
      seeds: 0,
      steps: 0,
      leastSteps: Number.POSITIVE_INFINITY,
      calls: 0,
      faults: 0,
      tasks: 0,
      runs: 0,
      violated: 0,
      marks: new Map(),
      hashes: [],
    },
  ]),
)
const failures: Outcome[] = []
/** After so many there is enough to look at. */
const MOST_FAILURES = 10

const take = (outcome: Outcome): boolean => {
  const tally = tallies.get(outcome.settings.profile)!
  tally.seeds++
  tally.steps += outcome.steps
  tally.leastSteps = Math.min(tally.leastSteps, outcome.steps)
  tally.calls += outcome.calls
  tally.faults += outcome.faults
  tally.tasks += outcome.tasks
  tally.runs += outcome.runs
  tally.hashes.push(`${String(outcome.seed).padStart(12, '0')} ${outcome.hash}`)
  for (const [mark, hits] of outcome.marks) tally.marks.set(mark, (tally.marks.get(mark) ?? 0) + hits)
  if (outcome.lines !== null) for (const line of outcome.lines) console.log(line)
  if (outcome.violations.length === 0) return true
  tally.violated++
  failures.push(outcome)
  tell(outcome)
  return failures.length < MOST_FAILURES
}

const tell = ({ seed, settings, violations, steps }: Outcome): void => {
  console.log(`VIOLATED: seed ${seed} of ${settings.profile}, after ${steps} steps`)
  for (const { invariant, what, step, at } of violations.slice(0, 5)) {
    console.log(`  ${invariant} at step ${step}, ${(at / 1_000).toFixed(1)} s: ${what}`)
    console.log(`     ${INVARIANTS[invariant]}`)
  }
  if (!isAlone) console.log(`  npm run simulate -- --profile ${settings.profile} --seed ${seed} --seeds 1 --trace`)
}

const begun = performance.now()
const text = await bundled()
await runOrders({ text, isIsolated: options.isolated }, orders(), Math.min(Number(options.jobs), count), take)
const seconds = (performance.now() - begun) / 1_000

const [firstFailure] = failures
if (firstFailure !== undefined && !options.trace) {
  const { seed, settings } = firstFailure
  const shrunk = await shrink(compiled(text), { seed, profile: settings.profile, reduction }, firstFailure)
  console.log(`Seed ${seed} shrunk from ${firstFailure.steps} to ${shrunk.outcome.steps} steps:`)
  for (const line of shrunk.story) console.log(`  ${line}`)
  console.log(
    `  npm run simulate -- --profile ${settings.profile} --seed ${seed} --seeds 1 --trace --reduction '${JSON.stringify(shrunk.reduction)}'`,
  )
}

let isWhole = true
for (const [profile, tally] of tallies) {
  if (tally.seeds === 0) continue
  const digest = createHash('sha256').update(tally.hashes.sort().join('\n')).digest('hex').slice(0, 16)
  console.log(
    `${profile}: ${tally.seeds} seeds, ${tally.violated} violated; ${tally.steps} steps (at least ${tally.leastSteps} a seed), ${tally.calls} calls, ${tally.faults} faults, ${tally.tasks} tasks, ${tally.runs} runs; traces ${digest}`,
  )
  if (options.marks) for (const [mark, hits] of [...tally.marks].sort()) console.log(`  ${hits}\t${mark}`)
  const missing = missingMarks(profile, tally.seeds, tally.marks)
  if (missing.length === 0) continue
  isWhole = false
  console.log(`NEVER REACHED in ${tally.seeds} seeds of ${profile}: ${missing.join(', ')}`)
}
console.log(`${seconds.toFixed(1)} s`)
process.exitCode = failures.length === 0 && isWhole ? 0 : 1
