/** Many dead letters from the shell: seen, brought back with a bar, interrupted and taken up again; and cancelled. */
import { performance } from 'node:perf_hooks'
import { expect, test } from 'vitest'
import { type Folder, makeFolder } from '../cli/shell.ts'
import { noTerminal, runOnTerminal } from '../cli/terminal.ts'
import { report } from '../crash/seed.ts'
import { volume } from '../volume.ts'

const COUNT = volume(30_000, 100_000)

const timed = async <T>(work: () => Promise<T>): Promise<readonly [T, number]> => {
  const begun = performance.now()
  return [await work(), (performance.now() - begun) / 1_000]
}

const makeDead = (folder: Folder): Promise<void> =>
  folder.withClient(async (client) => {
    await client.submitMany(
      Array.from({ length: COUNT }, (_, n) => ({ type: 'mail', input: { n } })),
      { maxRetries: 0 },
    )
    await client
      .worker({ concurrency: 500 })
      .handle('mail', (input) => {
        throw new Error(`user ${(input as { n: number }).n} has no address`)
      })
      .drain()
  })

const replayedIn = (text: string): number => Number(/replayed (\d+) tasks?/.exec(text)?.[1] ?? Number.NaN)

test(`${COUNT} dead letters are replayed from a terminal, interrupted, and taken up again without a double`, async (context) => {
  if (noTerminal !== '') context.skip(noTerminal)
  const folder = makeFolder()
  await makeDead(folder)
  let grouping = Number.POSITIVE_INFINITY
  for (let turn = 0; turn < 3; turn++) {
    const [groups, seconds] = await timed(() => folder.run(['dead', '--groups', '--json']))
    expect(JSON.parse(groups.stdout)).toMatchObject({ scanned: COUNT, groups: [{ count: COUNT }] })
    grouping = Math.min(grouping, seconds)
  }

  const args = ['replay', '--all', '--yes']
  // Control-C as soon as the bar has gone some way.
  const first = await runOnTerminal(folder, args, { type: [[new RegExp(` [1-9]\\d{3,}/${COUNT}`), '\u0003']] })
  expect(first.code).toBe(130)
  expect(first.stdout).toMatch(new RegExp(`█+.*░+ \\d+/${COUNT}`))
  expect(first.stdout).toContain('stopped as requested; run the same command to continue')
  const some = replayedIn(first.stdout)
  expect(some).toBeGreaterThan(0)
  expect(some).toBeLessThan(COUNT)

  const [second, took] = await timed(() => runOnTerminal(folder, args))
  expect(second.code).toBe(0)
  const rest = replayedIn(second.stdout)
  expect(some + rest).toBe(COUNT)
  await folder.withClient(async (client) => {
    expect((await client.count({ status: 'pending' })).count).toBe(COUNT)
    let cursor: string | null = null
    do {
      const page = await client.list({ limit: 1_000, ...(cursor === null ? null : { cursor }) })
      for (const { id, replayCount } of page.tasks) if (replayCount !== 1) throw new Error(`${id} has ${replayCount}`)
      cursor = page.cursor
    } while (cursor !== null)
  })

  const [cancelled, cancelling] = await timed(() => folder.run(['cancel', '--type', 'mail', '--yes']))
  expect(cancelled.stdout).toBe(`cancelled ${COUNT} tasks, asked 0 to stop\n`)
  report(
    `from the shell, start-up and plan included: ${COUNT} dead letters grouped in ${grouping.toFixed(2)} s; ` +
      `${some} replayed before Control-C, the other ${rest} at ${(rest / took).toFixed(0)}/s; all cancelled at ${(COUNT / cancelling).toFixed(0)}/s`,
  )
  // dead-letters.test.ts holds groups() to 2 s; here the start of the program and the way to a busy terminal come on top.
  expect(grouping).toBeLessThan(5)
  expect(rest / took).toBeGreaterThan(5_000)
})
