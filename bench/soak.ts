/** `npm run soak`: steady load with everything on, watched by the minute. Exits with 1 if a figure grows. */
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { machineFacts, Others } from './machine.ts'
import { percentileOf } from './median.ts'
import { runCommand } from './options.ts'
import { type Member, startCrew } from './soak/crew.ts'
import { prepare } from './soak/load.ts'
import { PLACES, type Place, type StoreName } from './soak/places.ts'
import { plotOf } from './soak/plot.ts'
import { chartsOf, tableOf, verdictsOf } from './soak/report.ts'
import type { Sample } from './soak/sample.ts'
import { loadHoldfast } from './systems/holdfast.ts'

const HELP = `Runs steady load with everything on (a dozen types, four queues, groups and rates, retries, expiry, schedules, steps, signals, retention,
holdfast serve with visitors) and samples each minute what the processes and the store use. Exits with 1 if a figure grows.

  npm run soak -- --store NAME [options]

  --store NAME     sqlite, postgres, s3, nats or memory; the server is started for the run
  --hours H        how long; or:
  --minutes M      (default 20)
  --rate N         tasks submitted a second (default 40; 10 on s3)
  --workers N      processes of \`holdfast worker\` (default 2; on memory all is one process)
  --every SECONDS  between two samples (default 60)
  --out FOLDER     for soak-NAME.jsonl and soak-NAME.svg (default test-artefacts)
  --leak BYTES     that a handler keeps of each task: shows that the rule turns red (default 0)
  --help           print this help

Example:
  npm run soak -- --store sqlite --hours 1
`

const isStore = (name: string): name is StoreName => name in PLACES

const numberOf = (text: string, option: string): number => {
  const value = Number(text)
  if (Number.isFinite(value) && value >= 0) return value
  throw new Error(`${option} must be a number, not '${text}'`)
}

const main = async (): Promise<void> => {
  const { values } = parseArgs({
    options: {
      store: { type: 'string', default: '' },
      hours: { type: 'string' },
      minutes: { type: 'string', default: '20' },
      rate: { type: 'string' },
      workers: { type: 'string', default: '2' },
      every: { type: 'string', default: '60' },
      out: { type: 'string', default: 'test-artefacts' },
      leak: { type: 'string', default: '0' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return void process.stdout.write(HELP)
  const { store } = values
  if (!isStore(store)) throw new Error(`--store must be one of ${Object.keys(PLACES).join(', ')}, not '${store}'`)
  const minutes =
    values.hours === undefined ? numberOf(values.minutes, '--minutes') : numberOf(values.hours, '--hours') * 60
  const plan: Plan = {
    store,
    minutes,
    everyMinutes: numberOf(values.every, '--every') / 60,
    rate: numberOf(values.rate ?? (store === 's3' ? '10' : '40'), '--rate'),
    workers: numberOf(values.workers, '--workers'),
    leak: numberOf(values.leak, '--leak'),
    out: values.out,
  }
  const place = await PLACES[store]()
  try {
    await soak(place, plan)
  } finally {
    await place.remove()
  }
}

interface Plan {
  readonly store: StoreName
  readonly minutes: number
  readonly everyMinutes: number
  readonly rate: number
  readonly workers: number
  readonly leak: number
  readonly out: string
}

const soak = async (place: Place, plan: Plan): Promise<void> => {
  const { store, minutes, everyMinutes, rate, out } = plan
  mkdirSync(out, { recursive: true })
  const [lines, picture] = [join(out, `soak-${store}.jsonl`), join(out, `soak-${store}.svg`)]
  const facts = { store, server: place.server, rate, workers: plan.workers, machine: machineFacts() }
  writeFileSync(lines, `${JSON.stringify(facts)}\n`)
  Object.assign(process.env, place.env)
  if (store !== 'memory') {
    const { connect, silentLogger } = await loadHoldfast()
    await using client = await connect(place.address, { create: true, logger: silentLogger })
    await prepare(client)
  }
  const crew = await startCrew(place, plan)
  const samples: Sample[] = []
  try {
    const begun = performance.now()
    const read = reader(crew, place)
    for (let n = 1; n * everyMinutes <= minutes + 1e-9; n++) {
      await sleep(Math.max(0, begun + n * everyMinutes * 60_000 - performance.now()))
      const sample = await read((performance.now() - begun) / 60_000)
      samples.push(sample)
      appendFileSync(lines, `${JSON.stringify(sample)}\n`)
      process.stderr.write(`${lineOf(sample)}\n`)
      writeFileSync(picture, plotOf(headingOf(plan, place), chartsOf(samples)))
    }
  } finally {
    for (const member of crew) await member.stop()
  }
  const verdicts = verdictsOf(samples)
  process.stdout.write(`${tableOf(verdicts)}\n${lines}\n${picture}\n`)
  const growing = verdicts.filter(({ trend }) => trend.isTrend)
  if (growing.length > 0) process.exitCode = 1
}

const headingOf = ({ store, rate, minutes }: Plan, { server }: Place): string =>
  `holdfast on ${store === 'memory' ? 'the memory store' : server}: ${rate} tasks/s for ${minutes} min`

/** Reads one sample after another: most figures are of the time since the one before. */
const reader = (crew: readonly Member[], place: Place): ((minute: number) => Promise<Sample>) => {
  let others = new Others()
  let last = performance.now()
  return async (minute) => {
    const taken = await Promise.all(crew.map(async (member) => [member.name, await member.sample()] as const))
    const store = await place.figures()
    const seconds = (performance.now() - last) / 1_000
    last = performance.now()
    for (const [, { cpuSeconds }] of taken) others.ours(cpuSeconds)
    const othersPercent = others.share
    others = new Others()
    const waits = taken.flatMap(([, { latencies }]) => latencies)
    const more = taken[0]![1].more
    return {
      minute: Math.round(minute * 1_000) / 1_000,
      at: new Date().toISOString(),
      processes: Object.fromEntries(
        taken.map(([name, { rss, heap, external, files, lagP99, lagMax, cpuSeconds }]) => [
          name,
          rounded({ rss, heap, external, files, lagP99, lagMax, cpu: (cpuSeconds / seconds) * 100 }),
        ]),
      ),
      store: rounded(store),
      work: rounded({
        ...more,
        started: waits.length,
        ...(waits.length > 0 && {
          p50: percentileOf(waits, 0.5),
          p95: percentileOf(waits, 0.95),
          p99: percentileOf(waits, 0.99),
        }),
        othersPercent,
      }),
    }
  }
}

const rounded = (figures: Readonly<Record<string, number>>): Record<string, number> =>
  Object.fromEntries(Object.entries(figures).map(([name, value]) => [name, Math.round(value * 100) / 100]))

const lineOf = ({ minute, processes, store, work }: Sample): string => {
  const memory = Object.entries(processes).map(
    ([name, { rss, heap }]) => `${name} ${rss!.toFixed(0)}/${heap!.toFixed(1)}`,
  )
  const rest = Object.entries({ ...store, ...work }).map(([name, value]) => `${name} ${value}`)
  return `${minute.toFixed(1)} min: RSS/heap MB ${memory.join(', ')}; ${rest.join(', ')}`
}

await runCommand(main)
