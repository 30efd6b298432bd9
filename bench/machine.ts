/** The machine of the measurement, and its load from other processes. */
import { availableParallelism, cpus, totalmem } from 'node:os'

export type MachineFacts = Readonly<Record<string, string | number>>

export const machineFacts = (): MachineFacts => ({
  processor: cpus()[0]?.model.trim() ?? 'unknown',
  cores: availableParallelism(),
  memoryGigabytes: Math.round(totalmem() / 2 ** 30),
  platform: `${process.platform} ${process.arch}`,
  node: process.version,
  sqlite: process.versions['sqlite'] ?? 'unknown',
})

const processorTimes = (): { readonly busy: number; readonly all: number } => {
  let busy = 0
  let idle = 0
  for (const { times } of cpus()) {
    busy += times.user + times.nice + times.sys + times.irq
    idle += times.idle
  }
  return { busy, all: busy + idle }
}

/** How much of the machine other processes used: a benchmark on a busy machine should say so. */
export class Others {
  readonly #start = processorTimes()
  #oursMs = 0

  ours(cpuSeconds: number): void {
    this.#oursMs += cpuSeconds * 1_000
  }

  /** Of all cores, in percent. */
  get share(): number {
    const now = processorTimes()
    const others = now.busy - this.#start.busy - this.#oursMs
    return Math.max(0, Math.round((others / Math.max(1, now.all - this.#start.all)) * 100))
  }
}
