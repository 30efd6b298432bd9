/** Workers of several processes under a rate, with always more work than it permits: how many tasks start in any window. */
import { connect, silentLogger } from '../../src/index.ts'
import { openAt } from './address.ts'
import type { Plant } from './planted.ts'
import { folder, pause, start, until } from './processes.ts'
import { readRecords } from './runs.ts'
import { chance } from './seed.ts'
import { readWitnesses } from './witness.ts'

export interface RateCampaign {
  readonly address: string
  readonly processes: number
  readonly count: number
  /** Milliseconds. */
  readonly window: number
  readonly burst: number
  readonly lasts: number
  readonly seed: number
  readonly plant?: Plant
}

export interface RateOutcome {
  readonly starts: number
  readonly byProcess: readonly number[]
  /** Starts in any window: the most and, while work waited, the fewest. */
  readonly most: number
  readonly fewest: number
  readonly violations: readonly string[]
}

const QUEUE = 'rated'

export const rateCampaign = async (plan: RateCampaign): Promise<RateOutcome> => {
  const { address, processes, count, window, burst, lasts, seed, plant = 'none' } = plan
  const place = folder()
  const { between } = chance(seed)
  const client = await connect(await openAt(address), { logger: silentLogger })
  await client.queue(QUEUE).limit({ rate: `${count}/${window}ms`, burst })
  const items = Array.from({ length: Math.ceil((lasts / window + 2) * (count + burst)) }, () => ({
    type: 'work',
    input: null,
    queue: QUEUE,
  }))
  const submitted = (await client.submitMany(items)).flatMap((result) => (result.ok ? [result.task.id] : []))
  const children = Array.from({ length: processes }, () =>
    start('worker', {
      file: address,
      folder: place,
      seed: between(0, 1e9),
      concurrency: 8,
      takes: [0, 50],
      leaseTtl: '10s',
      queues: [QUEUE],
      plant,
    }),
  )
  const started = () => readWitnesses(place).filter(({ what }) => what === 'start')
  await until('a task has started', () => started().length > 0)
  await pause(lasts)
  for (const child of children) child.signal('SIGTERM')
  await Promise.all(children.map((child) => child.end()))
  await client.close()
  const records = (await readRecords(address, submitted)).filter((record) => record !== null)
  const claims = records
    .flatMap(({ history }) => history.filter(({ move }) => move === 'claim').map(({ at }) => at))
    .sort((a, b) => a - b)
  const starts = started()
  const { most, fewest } = inWindows(claims, window)
  const allowed = count + burst - 1
  const violations: string[] = []
  if (most > allowed) violations.push(`${most} tasks were claimed in one window of ${window} ms, ${allowed} may be`)
  if (starts.length > claims.length) violations.push(`${starts.length} runs began, and ${claims.length} were claimed`)
  const byProcess = [...Map.groupBy(starts, ({ pid }) => pid).values()].map(({ length }) => length)
  return { starts: starts.length, byProcess, most, fewest, violations }
}

/** `fewest`: of the windows that begin with a start and end before the last one. */
const inWindows = (claims: readonly number[], window: number): { most: number; fewest: number } => {
  const counts = claims.map((from, i) => {
    const end = claims.findIndex((at, j) => j > i && at >= from + window)
    return { count: (end === -1 ? claims.length : end) - i, isWhole: end !== -1 }
  })
  const whole = counts.filter(({ isWhole }) => isWhole)
  return {
    most: Math.max(0, ...counts.map(({ count }) => count)),
    fewest: Math.min(...whole.map(({ count }) => count)),
  }
}
