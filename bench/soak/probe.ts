/** Loaded before everything else into a process of the soak (`node --expose-gc --import`): answers each message with what the process uses. */
import { readdirSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { latencies } from './latencies.ts'
import type { Figures, ProcessSample } from './sample.ts'

const MB = 1_048_576
const LAG_RESOLUTION = 10

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const lag = monitorEventLoopDelay({ resolution: LAG_RESOLUTION })
lag.enable()
let cpuBefore = process.cpuUsage()
let more: () => Promise<Figures> = async () => ({})

/** What a process of the soak adds to its samples. */
export const extend = (figures: () => Promise<Figures>): void => {
  more = figures
}

/** The delay that the histogram reports includes the time between two of its looks. */
const lagMs = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - LAG_RESOLUTION)

/** Linux only: elsewhere 0. */
const openFiles = (): number => {
  try {
    return readdirSync('/proc/self/fd').length
  } catch {
    return 0
  }
}

const sample = async (): Promise<ProcessSample> => {
  const { user, system } = process.cpuUsage(cpuBefore)
  cpuBefore = process.cpuUsage()
  const [lagP99, lagMax] = [lagMs(lag.percentile(99)), lagMs(lag.max)]
  lag.reset()
  const rss = process.memoryUsage.rss() / MB
  // Twice: the first lets weak references and finalizers go, the second what they held.
  collect()
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return {
    rss,
    heap: heapUsed / MB,
    external: external / MB,
    files: openFiles(),
    lagP99,
    lagMax,
    cpuSeconds: (user + system) / 1e6,
    latencies: latencies(),
    more: await more(),
  }
}

process.on('message', () => void sample().then((taken) => process.send?.(taken)))
// The soak has ended, however it did.
process.on('disconnect', () => process.exit())
process.channel?.unref()
