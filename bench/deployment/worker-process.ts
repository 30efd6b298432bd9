/** The process that runs tasks. Its argument is the name of the system. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Use, Worker } from './adapter.ts'
import { cpuSeconds, micros, peakRssMegabytes, send, serve } from './serve.ts'
import { systemNamed } from './systems.ts'
import type { Input } from './tasks.ts'

/** Since the process was started. */
export interface Counts {
  /** First attempts that have ended, in success or not. */
  readonly ended: number
  readonly completed: number
}

/** Counts are sent no more often than this. */
const REPORT_MS = 10

const adapter = systemNamed(process.argv[2]!).adapter()
let worker: Worker
let ended = 0
let completed = 0
let markAt: number | null = null
const waits: [at: number, micros: number][] = []

let isReportDue = false
const report = (): void => {
  if (isReportDue) return
  isReportDue = true
  setTimeout(() => {
    isReportDue = false
    send({ note: { ended, completed } satisfies Counts })
  }, REPORT_MS)
}

const onStarted = ({ at, fails }: Input, isFirstAttempt: boolean): void => {
  if (at !== undefined) waits.push([at, micros() - at])
  if (fails && isFirstAttempt) throw new Error('fails once')
}

const verbs = {
  async open(use: Use): Promise<void> {
    worker = await adapter.openWorker(use)
  },

  /** Starts to handle tasks. `mark`: the time of this many completions is recorded. */
  async go({ mark }: { readonly mark: number | null }): Promise<void> {
    await worker.start({
      started: onStarted,
      ended(isFirstAttempt, isCompleted) {
        if (isFirstAttempt) ended++
        if (isCompleted) completed++
        if (ended === mark) markAt ??= micros()
        report()
      },
    })
  },

  /** How many first attempts have ended, and the resources they used. */
  spent: (): { ended: number; cpuSeconds: number } => ({ ended, cpuSeconds: cpuSeconds() }),

  /** Stops handling tasks. */
  async finish(): Promise<{ peakRssMegabytes: number }> {
    await worker.stop()
    return { peakRssMegabytes: peakRssMegabytes() }
  },

  markAt: (): number | null => markAt,

  /** For each started task: when it was submitted and how long it waited, in microseconds. */
  waits: (): readonly (readonly [at: number, micros: number])[] => waits,

  waitCount: (): number => waits.length,

  /** The memory and CPU of the idle process. */
  async rest({ ms }: { readonly ms: number }): Promise<{ cpuPercent: number; rssMegabytes: number }> {
    const cpu = cpuSeconds()
    const start = performance.now()
    await sleep(ms)
    const seconds = (performance.now() - start) / 1_000
    return {
      cpuPercent: ((cpuSeconds() - cpu) / seconds) * 100,
      rssMegabytes: process.memoryUsage.rss() / 2 ** 20,
    }
  },

  async close(): Promise<{ cpuSeconds: number }> {
    await worker.close()
    return { cpuSeconds: cpuSeconds() }
  },
}

export type WorkerVerbs = typeof verbs

serve(verbs)
