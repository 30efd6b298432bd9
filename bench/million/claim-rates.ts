/** What viewers cost the claims: no-op tasks through a worker, without viewers and with some, taking turns. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { medianOf } from '../median.ts'
import type { PageOf } from './pages.ts'

const LEAST_RATIO = 0.9
const VIEWERS = 5

export interface Drains {
  /** Tasks in one. */
  readonly drain: number
  /** How many of each kind. */
  readonly runs: number
}

/** The pages that people leave open. */
const viewed = (pages: readonly PageOf[]): readonly PageOf[] =>
  ['overview', 'queues', 'tasks, all', 'tasks, retrying', 'task, ready']
    .map((name) => pages.find((page) => page.name === name)!)
    .slice(0, VIEWERS)

export const measureClaims = async (
  address: string,
  url: string,
  pages: readonly PageOf[],
  { drain, runs }: Drains,
): Promise<void> => {
  const rates: Record<'without' | 'with', number[]> = { without: [], with: [] }
  for (let n = 0; n < 2 * runs; n++) {
    const side = n % 2 === 0 ? 'without' : 'with'
    const worker = await started('drain.ts', [address, String(drain)])
    const viewers = side === 'with' ? await started('viewers.ts', [url, JSON.stringify(viewed(pages))]) : null
    // They have opened their pages by then.
    await new Promise((done) => setTimeout(done, 3_000))
    const { seconds } = (await worker.end()) as { seconds: number }
    const seen = await viewers?.end()
    rates[side].push(drain / seconds)
    const note = seen === undefined ? '' : ` (${JSON.stringify(seen)})`
    console.log(`  ${side.padEnd(8)} viewers: ${Math.round(drain / seconds).toLocaleString('en')} tasks/s${note}`)
  }
  const ratio = medianOf(rates.with) / medianOf(rates.without)
  console.log(
    `\n  with ${VIEWERS} viewers ${ratio.toFixed(2)} of the rate without, medians of ${runs}: ${ratio >= LEAST_RATIO ? 'met' : 'NOT MET'} (at least ${LEAST_RATIO})`,
  )
}

/** A process that says when it is ready, does its work on a line of input, and prints what came of it. */
const started = async (file: string, args: readonly string[]): Promise<{ end(): Promise<unknown> }> => {
  const path = fileURLToPath(new URL(`./${file}`, import.meta.url))
  const child: ChildProcess = spawn(process.execPath, [path, ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
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
