/** From a SQLite file to PostgreSQL under load, the mover killed at every named point: nothing runs twice, nothing is lost. */
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { makeFolder } from '../cli/shell.ts'
import { DEATHS, moveCampaign } from '../crash/move-campaign.ts'
import { moveRate } from '../crash/move-rate.ts'
import { cleanUp, folder } from '../crash/processes.ts'
import { report } from '../crash/seed.ts'
import { volume } from '../volume.ts'
import { freshDatabase, onPostgres } from './setup.ts'

cleanUp(afterAll)

const TASKS = volume(20_000, 100_000)

onPostgres('a move', (url) => {
  const shell = makeFolder()
  const file = (): string => join(folder(), 'tasks.db')

  test.concurrent('from SQLite to PostgreSQL with live workers on both sides, killed at every named point and run again, loses and doubles nothing', {
    timeout: 300_000,
  }, async (own) => {
    const outcome = await moveCampaign({ from: file(), to: await freshDatabase(url, own), deaths: DEATHS })
    const { wrong, killed, stolen, ranOn, slots } = outcome
    report(
      `move, postgres: ${killed} kills of the mover, ${stolen} tasks claimed in between, ${ranOn.from} tasks ran in the file, ${ranOn.to} in PostgreSQL, ${slots} slots, ${wrong.length} violations`,
    )
    expect(wrong.slice(0, 5)).toEqual([])
    expect(killed).toBe(DEATHS.length)
    expect(Math.min(stolen, ranOn.from, ranOn.to, slots)).toBeGreaterThan(0)
  })

  test.concurrent('from PostgreSQL back to a file loses and doubles nothing either', {
    timeout: 180_000,
  }, async (own) => {
    const deaths = DEATHS.filter(({ call }) => ['insert', 'commit', 'remove'].includes(call))
    const { wrong } = await moveCampaign({ from: await freshDatabase(url, own), to: file(), deaths, tasks: 500 })
    expect(wrong.slice(0, 5)).toEqual([])
  })

  test(`of ${TASKS} tasks from SQLite to PostgreSQL is measured`, { timeout: 180_000 }, async () => {
    const { rate, arrived } = await moveRate(file(), await freshDatabase(url), TASKS)
    report(`move: ${TASKS} tasks from SQLite to PostgreSQL at ${Math.round(rate)} a second`)
    expect(arrived).toBe(TASKS)
    // Far below what a quiet machine does: only to notice a move that crawls.
    expect(rate).toBeGreaterThan(300)
  })

  test('export, import and move do what they do on files, as a user types it', async () => {
    const to = await freshDatabase(url)
    const from = `sqlite:${shell.path}/holdfast.db`
    for (const n of ['1', '2']) await shell.run(['submit', '-t', 'work', '-i', n, '--key', `k${n}`])
    expect((await shell.run(['move', from, to])).code).toBe(5)
    await shell.run(['init', to])
    expect((await shell.run(['move', from, to])).stdout).toMatch(/^moved 2 tasks from sqlite:.* to postgres:/)
    const exported = await shell.run(['export', '--url', to])
    expect(exported.stdout.trim().split('\n')).toHaveLength(1 + 1 + 2 + 1)
    const back = ['import', '-', '--url', `sqlite:${shell.path}/back.db`]
    expect((await shell.run(back, { input: exported.stdout })).stdout).toBe('imported 2 tasks\n')
    expect((await shell.run(['import', '-', '--url', to], { input: exported.stdout })).stdout).toBe(
      'imported 0 tasks; 2 tasks of the file already existed\n',
    )
  })
})
