/** kill -9 of a worker after every single write of a task of ten steps: what was recorded does not run again, and the task completes. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect, silentLogger } from '../../src/index.ts'
import { openAt } from './address.ts'
import { folder, start } from './processes.ts'

export const STEPS = 10
/** Two claims, ten steps, one park, one end. */
export const WRITES = STEPS + 4
const AT_ONCE = 5
const EVERY = Array.from({ length: WRITES }, (_, i) => i + 1)

export interface StepCampaign {
  readonly address: string
  readonly leaseTtl: string
  /** The second process does not see what was recorded: the campaign must notice. */
  readonly isForgetful?: boolean
  /** After which writes; default: each. */
  readonly after?: readonly number[]
}

export interface StepOutcome {
  readonly kills: number
  /** Steps that ran a second time: the write that recorded them had not reached the store. */
  readonly repeated: number
  readonly violations: readonly string[]
}

export const stepCampaign = async ({
  address,
  leaseTtl,
  isForgetful = false,
  after: chosen = EVERY,
}: StepCampaign): Promise<StepOutcome> => {
  const client = await connect(await openAt(address), { logger: silentLogger })
  const violations: string[] = []
  let [kills, repeated] = [0, 0]

  const killedAfter = async (writes: number): Promise<void> => {
    const place = folder()
    const queue = `after-${writes}`
    const wrong = (what: string): void => void violations.push(`killed after write ${writes}: ${what}`)
    const effects = (): readonly string[] => {
      const file = join(place, 'effects')
      return existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : []
    }
    // More retries than kills: on a busy machine a live worker may lose a lease of one second, too.
    const { id } = await client.submit('ten', null, {
      queue,
      maxRetries: 20,
      // A forgetful worker fails every run: its task has to end.
      retryPolicy: { base: '20ms', multiplier: 1, max: '20ms' },
    })
    const runs = (some: readonly string[], i: number) =>
      some.filter((line) => line.startsWith(`${id}:step ${i} `)).length
    const plan = { file: address, folder: place, queue, leaseTtl }
    const { signal } = await start('stepper', { ...plan, writes }).ended
    if (signal !== 'SIGKILL') return wrong(`it was not killed (${signal})`)
    kills++
    const recorded = (await client.get(id)).steps.filter(({ kind }) => kind === 'step').map(({ name }) => name)
    const before = effects()
    const second = start('stepper', { ...plan, writes: 0, isForgetful })
    const done = await client.waitForEnd(id, { timeout: '60s' })
    await second.kill()
    const after = effects()
    if (done.status !== 'completed') wrong(`the task is ${done.status}`)
    if ((done.output as readonly { i: number }[] | null)?.map(({ i }) => i).join() !== upTo(STEPS).join())
      wrong(`its output is ${JSON.stringify(done.output)?.slice(0, 200)}`)
    for (const i of upTo(STEPS)) {
      const [was, is] = [runs(before, i), runs(after, i)]
      if (is === 0) wrong(`step ${i} never ran`)
      if (is > was && recorded.includes(`step ${i}`)) wrong(`step ${i} was recorded and ran again`)
      if (is > 2) wrong(`step ${i} ran ${is} times`)
      if (is === 2) repeated++
    }
  }

  try {
    const left = [...chosen]
    const lane = async (): Promise<void> => {
      for (let writes = left.shift(); writes !== undefined; writes = left.shift()) await killedAfter(writes)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, lane))
  } finally {
    await client.close()
  }
  return { kills, repeated, violations }
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i)
