/**
 * SPEC 3.6: workers with tasks under way, an interruption that is longer than their leases, and everybody who takes lapsed leases. The workers
 * live, so none of their leases may be taken. One run of one row; the rows are in interruption-rows.ts.
 */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type Client, connect, silentLogger } from '../../src/index.ts'
import type { Way } from './children/taker.ts'
import { Child, pause, start, until } from './processes.ts'

export interface Interruption {
  readonly name: string
  /** Worker processes among which the tasks are. */
  readonly workers: number
  /** How long after its begin newcomers start. */
  readonly newcomersAfter: number
  /** `everyone`: all processes that use the store. Returns its end. */
  begin(url: string, everyone: readonly Child[]): Promise<() => Promise<void>>
}

export interface InterruptionPlan {
  readonly url: string
  readonly row: Interruption
  readonly tasks: number
  readonly lease: number
  readonly lasts: number
  /** A process each, from before the interruption on. */
  readonly standing: readonly (readonly Way[])[]
  /** The same, started during the interruption. */
  readonly newcomers: readonly (readonly Way[])[]
  /** Also `holdfast serve`, and claims through it. */
  readonly http: boolean
  /** The planted bug of takers. */
  readonly isHasty?: boolean
}

export interface InterruptionResult {
  readonly tasks: number
  /** Tasks whose lease was taken from the living worker. */
  readonly taken: number
  /** Of those without retries. */
  readonly dead: number
  readonly completed: number
  /** The longest time for which this process, which has little to do, did not get the processor. */
  readonly stall: number
  /** Leases that were lost before the interruption began: the machine was too busy for this run to say anything. */
  readonly lostBefore: number
  /** Handlers that were told lease-lost before it began: their leases were not renewed in time, on that machine. */
  readonly toldBefore: number
  /** Handlers that were told lease-lost because the interruption was longer than their lease. */
  readonly aborted: number
  /** What happened to them, and by whom. */
  readonly stories: readonly string[]
}

/**
 * Whether a run says anything: a worker that does not get the processor for longer than between two renewals is cut off by the machine, not by the
 * row.
 */
export const isConclusive = (
  { lostBefore, toldBefore, stall }: InterruptionResult,
  { lease }: { readonly lease: number },
): boolean => lostBefore === 0 && toldBefore === 0 && stall < lease / 3

const LAUNCHER = fileURLToPath(new URL('../../bin/holdfast.js', import.meta.url))

export const interrupt = async (plan: InterruptionPlan): Promise<InterruptionResult> => {
  const { url, row, tasks, lease, lasts, standing, newcomers, http, isHasty = false } = plan
  const leaseTtl = `${lease}ms`
  const children: Child[] = []
  const started = (child: Child): Child => {
    children.push(child)
    return child
  }
  const taker = (ways: readonly Way[]): Child => started(start('taker', { url, ways, leaseTtl, isHasty }))
  let stopClaims = async (): Promise<void> => {}
  const stalls = watchStalls()
  try {
    await submitAll(url, tasks)
    // More room than tasks: workers with free slots look on, and find lapsed leases.
    const concurrency = Math.ceil(tasks / row.workers) + 3
    const workers = Array.from({ length: row.workers }, () => started(start('steady', { url, concurrency, leaseTtl })))
    const runs = (): number => workers.reduce((sum, worker) => sum + worker.said('runs').length, 0)
    await until('all tasks run', () => runs() === tasks)
    const takers = standing.map(taker)
    if (http) stopClaims = await claimOverHttp(started(serve(url)), leaseTtl)
    await Promise.all(takers.map((child) => child.heard('ready')))
    // Otherwise they would take nothing because they are new.
    await pause(lease * 1.2)

    const told = (): number => workers.reduce((sum, worker) => sum + worker.said('aborted').length, 0)
    const toldBefore = told()
    const begunAt = Date.now()
    const end = await row.begin(url, children)
    await pause(row.newcomersAfter)
    const late = newcomers.map(taker)
    await pause(lasts - row.newcomersAfter)
    await end()
    const endedAt = Date.now()
    await Promise.all(late.map((child) => child.heard('ready')))
    // By then everybody has had contact for two lease lengths, and has looked.
    await pause(lease * 2)

    for (const worker of workers) worker.signal('SIGUSR2')
    await stopClaims()
    for (const child of children) if (!workers.includes(child)) await child.kill()
    const fences = new Map(workers.flatMap((worker) => worker.said('runs').map(({ id, fence }) => [id, fence])))
    const result = await tally(url, fences, { begunAt, endedAt })
    for (const worker of workers) worker.signal('SIGTERM')
    return { ...result, toldBefore, aborted: told(), stall: stalls.longest() }
  } finally {
    stalls.stop()
    await stopClaims()
    for (const child of children) await child.kill()
  }
}

/** How late a timer was at the most. */
const watchStalls = (): { longest(): number; stop(): void } => {
  const every = 50
  let [last, longest] = [performance.now(), 0]
  const timer = setInterval(() => {
    const now = performance.now()
    longest = Math.max(longest, now - last - every)
    last = now
  }, every)
  return { longest: () => Math.round(longest), stop: () => clearInterval(timer) }
}

const submitAll = async (url: string, tasks: number): Promise<void> => {
  const client = await connect(url, { create: true, logger: silentLogger })
  const submitted = await client.submitMany(
    Array.from({ length: tasks }, (_, n) => ({ type: 'work', input: n, maxRetries: n % 2 === 0 ? 0 : 3 })),
  )
  await client.close()
  if (!submitted.every(({ ok }) => ok)) throw new Error('not all tasks were submitted')
}

const serve = (url: string): Child =>
  new Child(
    spawn(process.execPath, [LAUNCHER, 'serve', '--url', url, '--port', '0', '--no-token', '--json'], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, NODE_NO_WARNINGS: '1' },
    }),
  )

/** Claims again and again, as a worker in another language would. Returns how to stop it. */
const claimOverHttp = async (server: Child, leaseTtl: string): Promise<() => Promise<void>> => {
  const listening = () => server.lines.find((line) => line['event'] === 'listening')
  await until('holdfast serve listens', () => listening() !== undefined)
  const address = new URL('/api/v1/claim', String(listening()!['url']))
  const over = new AbortController()
  const claimOn = async (): Promise<void> => {
    const body = JSON.stringify({ workerId: 'over-http', leaseTtl, limit: 10 })
    while (!over.signal.aborted) {
      const headers = { 'content-type': 'application/json' }
      const answer = await fetch(address, { method: 'POST', headers, body, signal: over.signal }).catch(() => null)
      if (answer !== null && answer.status >= 400 && answer.status < 500)
        throw new Error(`claim over HTTP: ${answer.status} ${await answer.text()}`)
      await answer?.text().catch(() => '')
      await pause(100)
    }
  }
  const claiming = claimOn()
  // Looked at when it is stopped.
  claiming.catch(() => {})
  return async () => {
    over.abort()
    await claiming
  }
}

/** `fences`: of the runs that were under way, by task. Then when the interruption began and ended. */
const tally = async (
  url: string,
  fences: ReadonlyMap<unknown, unknown>,
  { begunAt, endedAt }: { readonly begunAt: number; readonly endedAt: number },
): Promise<Omit<InterruptionResult, 'toldBefore' | 'aborted' | 'stall'>> => {
  const client = await connect(url, { logger: silentLogger })
  try {
    const all = await settled(client, fences.size)
    const stolen = all.filter(
      ({ id, attempts, history }) => attempts !== fences.get(id) || history.some(({ move }) => move === 'lose-lease'),
    )
    // What happened after their first claim, and by whom.
    const stories = stolen.map(({ history }) =>
      history
        .slice(2)
        .map(({ move, by, at }) => `${move} by ${by} at ${((at - endedAt) / 1_000).toFixed(1)} s`)
        .join(', '),
    )
    const lostBefore = all.filter(({ history }) =>
      history.some(({ move, at }) => move === 'lose-lease' && at < begunAt),
    )
    return {
      lostBefore: lostBefore.length,
      tasks: all.length,
      taken: stolen.length,
      dead: all.filter(({ status }) => status === 'failed').length,
      completed: all.filter(({ status }) => status === 'completed').length,
      stories: [...new Set(stories)],
    }
  } finally {
    await client.close()
  }
}

/** All tasks once they have ended. What a taker holds does not end: it is not waited for. */
const settled = async (client: Client, tasks: number) => {
  const read = async () => {
    const { tasks: found } = await client.list({ limit: tasks })
    return Promise.all(found.map(({ id }) => client.get(id)))
  }
  const hasEnded = ({ history, completedAt }: Awaited<ReturnType<typeof read>>[number]): boolean =>
    completedAt !== null || history.some(({ move }) => move === 'lose-lease')
  let all = await read()
  await until('all have ended', async () => {
    all = await read()
    return all.every(hasEnded)
  })
  return all
}
