/** Measures claims with very many other tasks, compared with few. */
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'
import { type Ground, grounds } from './depth/ground.ts'
import type { Claimed } from './depth/run-one.ts'
import { type Scenario, scenariosOf } from './depth/scenarios.ts'
import { machineFacts } from './machine.ts'
import { medianOf } from './median.ts'
import { fieldsOf, runCommand, wholeNumber } from './options.ts'
import type { Field } from './systems.ts'

const HELP = `Measures how fast the first claims are with a great many tasks in the way, against 10,000 pending.

  npm run bench:depth                build first, some minutes
  node bench/depth.ts [options]      uses the existing dist

  --store NAME     sqlite, postgres (starts a temporary server), or all (the default)
  --deep N         tasks in the way (default 1000000); a tenth of it of higher priority in their scenarios
  --claims N       how many claims are timed (default 5000)
  --runs N         runs of each scenario, taking turns; the median counts (default 3)
  --only NAME      only this scenario and the baseline; may be repeated
                   (deep, other-type, far-future, expired)
  --explain FILE   also write how PostgreSQL executes the claim in each scenario
  --json           everything measured, as JSON
  --help           print this help

Example:
  node bench/depth.ts --store postgres --deep 200000 --only expired --explain plans.txt
`

const LEAST = 0.8
const RUN_ONE = fileURLToPath(new URL('./depth/run-one.ts', import.meta.url))
const run = promisify(execFile)

interface Measured {
  readonly store: Field
  readonly name: string
  readonly what: string
  readonly claimsPerSecond: number
  readonly firstMs: number
  /** The ratio to the baseline: the median of single runs. */
  readonly ratio: number
}

interface Options {
  readonly claims: number
  readonly runs: number
  said(line: string): void
}

const main = async (): Promise<void> => {
  const { values } = parseArgs({
    options: {
      store: { type: 'string', default: 'all' },
      deep: { type: 'string', default: '1000000' },
      claims: { type: 'string', default: '5000' },
      runs: { type: 'string', default: '3' },
      only: { type: 'string', multiple: true, default: [] },
      explain: { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(HELP)
  const stores = fieldsOf(values.store)
  const [baseline, ...others] = scenariosOf(wholeNumber(values.deep, '--deep'))
  const scenarios = [baseline!, ...others.filter(({ name }) => values.only.length === 0 || values.only.includes(name))]
  const options: Options = {
    claims: wholeNumber(values.claims, '--claims'),
    runs: wholeNumber(values.runs, '--runs'),
    said: (line) => values.json || console.error(line),
  }
  const measured: Measured[] = []
  const plans: string[] = []
  for (const store of stores) {
    const ground = await grounds[store]()
    try {
      measured.push(...(await measure(store, ground, scenarios, options)))
      if (values.explain !== undefined && store === 'postgres')
        for (const scenario of scenarios) plans.push(`== ${scenario.what}\n\n${await ground.explain(scenario)}\n`)
    } finally {
      await ground.remove()
    }
  }
  if (values.explain !== undefined) writeFileSync(values.explain, plans.join('\n'))
  if (values.json) return console.log(JSON.stringify({ machine: machineFacts(), ...options, measured }, null, 2))
  print(measured, options)
}

const measure = async (
  store: Field,
  ground: Ground,
  scenarios: readonly Scenario[],
  { claims, runs, said }: Options,
): Promise<Measured[]> => {
  for (const scenario of scenarios) {
    said(`${store}: making ${scenario.what}`)
    await ground.make(scenario)
  }
  const results = new Map<string, Claimed[]>(scenarios.map(({ name }) => [name, []]))
  for (let n = 0; n < runs; n++) {
    for (const scenario of scenarios) {
      said(`${store}, run ${n + 1} of ${runs}: ${scenario.what}`)
      const claimed = await ground.withCopy(scenarios[0]!, (warmUp) =>
        ground.withCopy(scenario, (address) => runOne(warmUp, address, claims)),
      )
      results.get(scenario.name)!.push(claimed)
    }
  }
  const base = results.get(scenarios[0]!.name)!
  return scenarios.map(({ name, what }) => {
    const each = results.get(name)!
    return {
      store,
      name,
      what,
      claimsPerSecond: claims / medianOf(each.map(({ seconds }) => seconds)),
      firstMs: medianOf(each.map(({ firstMs }) => firstMs)),
      ratio: medianOf(each.map(({ seconds }, n) => base[n]!.seconds / seconds)),
    }
  })
}

const runOne = async (warmUp: string, address: string, claims: number): Promise<Claimed> => {
  const { stdout } = await run(process.execPath, [RUN_ONE, warmUp, address, String(claims)])
  return JSON.parse(stdout) as Claimed
}

const print = (measured: readonly Measured[], { claims, runs }: Options): void => {
  console.log(`\nThe first ${claims.toLocaleString('en')} claims, medians of ${runs} runs\n`)
  for (const { store, name, what, claimsPerSecond, firstMs, ratio } of measured) {
    const verdict = name === 'baseline' ? '' : `${ratio.toFixed(2)} of that, ${ratio >= LEAST ? 'met' : 'NOT MET'}`
    console.log(
      `  ${store.padEnd(9)} ${what.padEnd(52)} ${Math.round(claimsPerSecond).toLocaleString('en').padStart(7)}/s, first after ${firstMs.toFixed(0).padStart(4)} ms  ${verdict}`,
    )
  }
  console.log(`\nTarget: at least ${LEAST} of the rate with few.`)
}

await runCommand(main)
