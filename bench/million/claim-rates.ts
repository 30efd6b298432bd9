/** What viewers cost the claims: no-op tasks through a worker, without viewers and with some, taking turns. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { medianOf } from '../median.ts'
import { type Meter, noMeter, postgresMeter, processMeter } from '../meter.ts'
import type { PageOf } from './pages.ts'
import type { Server } from './server.ts'

const LEAST_RATIO = 0.9
const VIEWERS = 5

export interface Drains {
  /** Tasks per run. */
  readonly drain: number
  /** Runs of each kind. */
  readonly runs: number
}

/** The pages that people leave open. */
const viewed = (pages: readonly PageOf[]): readonly PageOf[] =>
  ['overview', 'queues', 'tasks, all', 'tasks, retrying', 'task, ready']
    .map((name) => pages.find((page) => page.name === name)!)
    .slice(0, VIEWERS)

interface Run {
  readonly rate: number
  /** Processor time of worker, server and database, in seconds for a million tasks. */
  readonly cpu: number
  /** CPU of the server alone, as a fraction of one core. */
  readonly server: number
}

/** CPU of the server, and of its store if that is a server too. */
export const metersOf = async (address: string, server: Server): Promise<readonly [Meter, Meter]> => [
  processMeter(server.pid),
  address.startsWith('sqlite:') ? noMeter : await postgresMeter(address),
]

export const measureClaims = async (
  address: string,
  server: Server,
  pages: readonly PageOf[],
  { drain, runs }: Drains,
): Promise<void> => {
  const sides: Record<'without' | 'with', Run[]> = { without: [], with: [] }
  const meters = await metersOf(address, server)
  const read = async (): Promise<number[]> =>
    Promise.all(meters.map(async (meter) => (await meter.read()).cpuSeconds ?? 0))
  for (let n = 0; n < 2 * runs; n++) {
    const side = n % 2 === 0 ? 'without' : 'with'
    const worker = await started(new URL('./drain.ts', import.meta.url), [address, String(drain)])
    const viewers =
      side === 'with'
        ? await started(new URL('./viewers.ts', import.meta.url), [server.url, JSON.stringify(viewed(pages))])
        : null
    // By then the viewers have opened their pages, and the submits have been reported to them.
    await new Promise((done) => setTimeout(done, 5_000))
    const before = await read()
    const { seconds, cpuSeconds } = (await worker.end()) as { seconds: number; cpuSeconds: number }
    const [serverCpu, databaseCpu] = (await read()).map((after, i) => after - before[i]!) as [number, number]
    const seen = await viewers?.end()
    const cpu = ((cpuSeconds + serverCpu + databaseCpu) / drain) * 1_000_000
    sides[side].push({ rate: drain / seconds, cpu, server: serverCpu / seconds })
    const told = `${Math.round(drain / seconds).toLocaleString('en')} tasks/s, ${cpu.toFixed(0)} s of CPU for a million`
    const note = seen === undefined ? '' : `; the server ${Math.round((100 * serverCpu) / seconds)}% of a core`
    console.log(`  ${side.padEnd(8)} viewers: ${told}${note}`)
  }
  await Promise.all(meters.map((meter) => meter.close()))
  const medians = (name: keyof Run): readonly [number, number] => [
    medianOf(sides.with.map((run) => run[name])),
    medianOf(sides.without.map((run) => run[name])),
  ]
  const [rate, cpu] = [medians('rate'), medians('cpu')].map(([some, none]) => some! / none!) as [number, number]
  console.log(
    `\n  with ${VIEWERS} viewers ${rate.toFixed(2)} of the rate without, ${cpu.toFixed(2)} of the CPU, medians of ${runs}: ${rate >= LEAST_RATIO ? 'met' : 'NOT MET'} (at least ${LEAST_RATIO} of the rate)`,
  )
}

/** A process that reports when it is ready, starts its work on a line of input, and prints the result. */
const started = async (file: URL, args: readonly string[]): Promise<{ end(): Promise<unknown> }> => {
  const child: ChildProcess = spawn(process.execPath, [fileURLToPath(file), ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines = createInterface(child.stdout!)
  await once(lines, 'line')
  return {
    async end() {
      const said = once(lines, 'line')
      child.stdin!.write('go\n')
      const [line] = (await said) as [string]
      return JSON.parse(line)
    },
  }
}
