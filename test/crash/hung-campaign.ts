/** Many good tasks with hung ones among them, a `holdfast worker` of ten slots, and a supervisor that starts it again. */
import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Client, connect, silentLogger } from '../../src/index.ts'

export interface HungPlan {
  readonly url: string
  readonly good: number
  readonly hung: number
  /** Of the hung ones: each runs once more than this. */
  readonly maxRetries: number
  /** none: in the worker itself, which ends when all slots are stuck. */
  readonly isolate: 'none' | 'thread' | 'process'
}

export interface HungResult {
  readonly completed: number
  readonly dead: number
  readonly left: number
  /** Dead ones that did not run as often as they may. */
  readonly oddDead: number
  readonly runsOfHung: number
  /** Runs of good tasks beyond their first: a busy machine may be late for a timeout of 100 ms. */
  readonly extraRunsOfGood: number
  readonly starts: number
  /** How often the worker ended with 7. */
  readonly stuckEnds: number
  readonly otherEnds: readonly (number | null)[]
  readonly seconds: number
  /** Largest resident memory in MB: of the worker, and of it with its children. */
  readonly workerMb: number
  readonly totalMb: number
}

const LAUNCHER = fileURLToPath(new URL('../../bin/holdfast.js', import.meta.url))
const MODULE = fileURLToPath(new URL('./children/hung-handlers.mjs', import.meta.url))
const TIMEOUT = '100ms'
const STUCK = 7

export const runHung = async (plan: HungPlan): Promise<HungResult> => {
  const client = await connect(plan.url, { create: true, logger: silentLogger })
  try {
    await submitMixed(client, plan)
    const begun = performance.now()
    const supervisor = new Supervisor(plan)
    supervisor.start()
    try {
      while ((await leftOf(client)) > 0) await new Promise((done) => setTimeout(done, 250))
    } finally {
      await supervisor.stop()
    }
    const seconds = (performance.now() - begun) / 1_000
    return { ...(await tally(client, plan)), ...supervisor.facts, seconds }
  } finally {
    await client.close()
  }
}

/** Evenly among the good ones, in the order of submission. */
const submitMixed = async (client: Client, { good, hung, maxRetries }: HungPlan): Promise<void> => {
  const total = good + hung
  const isHung = (n: number): boolean => Math.floor(((n + 1) * hung) / total) > Math.floor((n * hung) / total)
  for (let from = 0; from < total; from += 1_000) {
    const some = Array.from({ length: Math.min(1_000, total - from) }, (_, i) => from + i)
    await client.submitMany(
      some.map((n) =>
        isHung(n)
          ? { type: 'hung', input: n, timeout: TIMEOUT, maxRetries }
          : { type: 'good', input: n, timeout: TIMEOUT, maxRetries: 10 },
      ),
    )
  }
}

const leftOf = async (client: Client): Promise<number> => {
  const [waiting, running] = await Promise.all([
    client.count({ status: 'pending' }, { cap: 10 }),
    client.count({ status: 'running' }, { cap: 10 }),
  ])
  return waiting.count + running.count
}

const tally = async (client: Client, { maxRetries }: HungPlan) => {
  const facts = { completed: 0, dead: 0, left: 0, oddDead: 0, runsOfHung: 0, extraRunsOfGood: 0 }
  let cursor: string | null = null
  do {
    const page: Awaited<ReturnType<Client['list']>> = await client.list({
      limit: 1_000,
      ...(cursor === null ? null : { cursor }),
    })
    for (const { type, status, retryCount } of page.tasks) {
      const isHung = type === 'hung'
      if (status === 'completed' && !isHung) facts.completed++
      else if (status === 'failed' && isHung) facts.dead++
      else facts.left++
      if (isHung) facts.runsOfHung += retryCount + 1
      else facts.extraRunsOfGood += retryCount
      if (isHung && retryCount !== maxRetries) facts.oddDead++
    }
    cursor = page.cursor
  } while (cursor !== null)
  return facts
}

class Supervisor {
  readonly #plan: HungPlan
  #child: ChildProcess | null = null
  #ended: Promise<void> = Promise.resolve()
  #isStopping = false
  #starts = 0
  #stuckEnds = 0
  readonly #otherEnds: (number | null)[] = []
  #workerMb = 0
  #totalMb = 0
  readonly #timer: NodeJS.Timeout

  constructor(plan: HungPlan) {
    this.#plan = plan
    this.#timer = setInterval(() => this.#weigh(), 250)
  }

  get facts() {
    const [workerMb, totalMb] = [Math.round(this.#workerMb), Math.round(this.#totalMb)]
    return { starts: this.#starts, stuckEnds: this.#stuckEnds, otherEnds: this.#otherEnds, workerMb, totalMb }
  }

  start(): void {
    const { url, isolate } = this.#plan
    this.#starts++
    const child = spawn(
      process.execPath,
      [LAUNCHER, 'worker', MODULE, '--url', url, '--concurrency', '10', '--stuck-after', TIMEOUT],
      {
        stdio: 'ignore',
        env: { ...process.env, NODE_NO_WARNINGS: '1', ...(isolate === 'none' ? null : { HUNG_ISOLATE: isolate }) },
      },
    )
    this.#child = child
    this.#ended = new Promise((done) => {
      child.once('exit', (code) => {
        if (code === STUCK) this.#stuckEnds++
        else if (!this.#isStopping) this.#otherEnds.push(code)
        if (!this.#isStopping) this.start()
        done()
      })
    })
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    clearInterval(this.#timer)
    this.#child?.kill('SIGTERM')
    await this.#ended
  }

  #weigh(): void {
    const pid = this.#child?.pid
    if (pid === undefined) return
    const own = residentMb(pid)
    const children =
      this.#plan.isolate === 'process' ? childrenOf(pid).reduce((sum, one) => sum + residentMb(one), 0) : 0
    this.#workerMb = Math.max(this.#workerMb, own)
    this.#totalMb = Math.max(this.#totalMb, own + children)
  }
}

/** 0: it is gone, or this is not Linux. */
const residentMb = (pid: number): number => {
  try {
    return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1_024
  } catch {
    return 0
  }
}

const childrenOf = (pid: number): number[] => {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
    )
  } catch {
    return []
  }
}
