/** A worker is stopped past its lease, another runs its task, and then the first goes on: its word no longer counts. */
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { type Client, connect, silentLogger } from '../../src/index.ts'
import type { StopperInput } from './children/stopper.ts'
import type { Plant } from './planted.ts'
import { type Child, cleanUp, folder, pause, start, until } from './processes.ts'
import { readRecords, violations } from './runs.ts'
import { report } from './seed.ts'
import { readWitnesses } from './witness.ts'

cleanUp()

const LEASE = 500

interface Stops {
  readonly stops: number
  readonly processes: number
  readonly plant?: Plant
}

const stopAndContinue = async ({ stops, processes, plant = 'none' }: Stops) => {
  const place = folder()
  const file = join(place, 'stop.db')
  const client = await connect(`sqlite:${file}`, { logger: silentLogger })
  const plan = { file, folder: place, leaseTtl: `${LEASE}ms`, plant }
  const children = Array.from({ length: processes }, () => start('stopper', plan))
  await Promise.all(children.map((child) => child.heard('ready')))
  const submitted: string[] = []
  const codes: string[] = []
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < stops) {
      const input: StopperInput = { at: next++ % 2 === 0 ? 'handler' : 'complete' }
      const { id } = await client.submit('work', input, {
        maxRetries: null,
        retryPolicy: { base: '10ms', max: '10ms' },
      })
      submitted.push(id)
      codes.push(await stopOnce(client, file, children, id))
    }
  }
  // Fewer tasks than processes: somebody must be awake to take over.
  await Promise.all(Array.from({ length: processes - 3 }, lane))
  for (const child of children) child.signal('SIGTERM')
  await Promise.all(children.map((child) => child.end()))
  await client.close()
  const witness = readWitnesses(place)
  const records = await readRecords(file, submitted)
  const aborts = witness.filter(({ what }) => what === 'aborted').map(({ reason }) => reason)
  return { codes, aborts, records, wrong: violations({ submitted, records, witness, leaseTtl: LEASE }) }
}

/** False when the write lock is not to be had for a while: a stopped process has it. */
const canWrite = async (file: string): Promise<boolean> => {
  const probe = new DatabaseSync(file, { timeout: 0 })
  try {
    for (let tries = 0; tries < 100; tries++) {
      try {
        probe.exec('begin immediate; rollback')
        return true
      } catch {
        await pause(5)
      }
    }
    return false
  } finally {
    probe.close()
  }
}

/** What the stopped run was told when it tried to complete. */
const stopOnce = async (client: Client, file: string, children: readonly Child[], task: string): Promise<string> => {
  const stopped = (): Child | undefined =>
    children.find((child) => child.said('stopping').some((line) => line['task'] === task))
  await until('a worker has stopped', () => stopped() !== undefined)
  const child = stopped()!
  while (!(await canWrite(file))) {
    writeFileSync(join(dirname(file), `${task}.again`), '')
    const times = child.said('stopping').length
    child.signal('SIGCONT')
    await until('it has stopped again', () => child.said('stopping').length > times)
  }
  await until('another worker has completed the task', async () => (await client.get(task)).status === 'completed')
  const before = (await client.get(task)).output
  child.signal('SIGCONT')
  const { fence } = child.said('stopping').find((line) => line['task'] === task)!
  const { code } = await child.heard('ended', (line) => line['task'] === task && line['fence'] === fence)
  const after = (await client.get(task)).output
  return JSON.stringify(before) === JSON.stringify(after) ? String(code) : `${code}, and the output was overwritten`
}

test('50 workers stopped past their lease are refused as STALE_LEASE when they go on, and the newer output stays', async () => {
  const { codes, aborts, records, wrong } = await stopAndContinue({ stops: 50, processes: 10 })
  const stale = codes.filter((code) => code === 'STALE_LEASE').length
  report(
    `stop-continue: ${stale} of ${codes.length} late completions refused as STALE_LEASE, ${aborts.length} handlers told lease-lost`,
  )
  expect(stale).toBe(50)
  expect(wrong).toEqual([])
  expect(aborts).toEqual(Array(25).fill('lease-lost'))
  expect(records.every((record) => record!.attempts >= 2)).toBe(true)
})

test('a store that completes by id alone is noticed', async () => {
  const { codes, wrong } = await stopAndContinue({ stops: 4, processes: 5, plant: 'ignore-lease' })
  expect(codes).not.toContain('STALE_LEASE')
  expect(wrong.some((sentence) => sentence.includes('has the output of run 1, but run 2 was the last'))).toBe(true)
})
