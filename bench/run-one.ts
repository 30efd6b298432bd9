/** One system, one workload, one process of its own: so CPU and memory are its own too. Prints one line of JSON. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Keeps } from './system.ts'
import { ENTRANTS } from './systems.ts'
import { type Result, WORKLOADS } from './workloads.ts'

export interface Measured {
  readonly keeps: Keeps
  /** Of the whole life of the process. */
  readonly cpuSeconds: number
  /** Null: this system cannot do it. */
  readonly result: (Result & { readonly maxRssMegabytes: number }) | null
}

const [entrantName, workloadName, tasks] = process.argv.slice(2)
const system = await ENTRANTS.find(({ name }) => name === entrantName)!.make()
const workload = WORKLOADS.find(({ name }) => name === workloadName)!
const dir = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
try {
  await system.open(dir)
  const result = await workload.run(system, Number(tasks))
  const maxRssMegabytes = process.resourceUsage().maxRSS / 1_024
  await system.close()
  const { user, system: kernel } = process.cpuUsage()
  const cpuSeconds = (user + kernel) / 1_000_000
  const measured: Measured = {
    keeps: system.keeps,
    cpuSeconds,
    result: result === null ? null : { ...result, maxRssMegabytes },
  }
  console.log(JSON.stringify(measured))
} finally {
  rmSync(dir, { recursive: true, force: true })
}
