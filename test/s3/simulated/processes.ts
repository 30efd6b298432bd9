/** Worker processes on one store of a simulated S3, and what they report. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { ended, killed } from '../../servers/processes.ts'

export interface WorkerSettings {
  readonly url: string
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string }
  readonly queues: readonly string[]
  readonly types: readonly string[]
  readonly concurrency: number
  /** Of a handler, in milliseconds. */
  readonly duration: number
}

export interface WorkerReport {
  started: number
  ended: number
  /** From the `at` of each input to the start of its handler. */
  waits: number[]
  /** Milliseconds of CPU since the process began. */
  cpu: number
}

const PROGRAM = join(import.meta.dirname, 'worker-process.ts')

export class WorkerProcesses {
  readonly #children: readonly ChildProcess[]

  constructor(children: readonly ChildProcess[]) {
    this.#children = children
  }

  /** All are ready. Each signs with a name of its own: `worker-1`, `worker-2`. */
  static async start(count: number, settings: WorkerSettings): Promise<WorkerProcesses> {
    const children = Array.from({ length: count }, (_, n) => {
      const credentials = { ...settings.credentials, accessKeyId: `worker-${n + 1}` }
      return fork(PROGRAM, [JSON.stringify({ ...settings, credentials })], { execArgv: [] })
    })
    await Promise.all(children.map((child) => once(child, 'message')))
    return new WorkerProcesses(children)
  }

  get pids(): readonly number[] {
    return this.#children.map(({ pid }) => pid!)
  }

  async reports(): Promise<readonly WorkerReport[]> {
    return Promise.all(
      this.#children.map(async (child) => {
        child.send('report')
        const [report] = await once(child, 'message')
        return report as WorkerReport
      }),
    )
  }

  /** Polls until this many ends were written, in all. */
  async untilEnded(count: number, deadline: number): Promise<readonly WorkerReport[]> {
    const until = performance.now() + deadline
    for (;;) {
      const reports = await this.reports()
      const all = reports.reduce((sum, report) => sum + report.ended, 0)
      if (all >= count || performance.now() > until) return reports
      await new Promise((later) => setTimeout(later, 20))
    }
  }

  async stop(): Promise<void> {
    for (const child of this.#children) if (child.connected) child.send('stop')
    await Promise.all(this.#children.map((child) => ended(child)))
  }

  async kill(): Promise<void> {
    await Promise.all(this.#children.map((child) => killed(child)))
  }
}
