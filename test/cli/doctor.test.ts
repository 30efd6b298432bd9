/** `holdfast doctor`: what is wrong with a store, and how to fix it. */
import { chmodSync, closeSync, openSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Folder, makeFolder } from './shell.ts'

const submitMany = (folder: Folder, count: number): Promise<unknown> =>
  folder.withClient((client) =>
    client.submitMany(Array.from({ length: count }, (_, n) => ({ type: 'mail', input: 'x'.repeat(500) + n }))),
  )

describe('doctor', () => {
  it('says that a store is healthy, one line per check, and exits with 0', async () => {
    const folder = makeFolder()
    await folder.run(['init'])
    const { code, stdout, stderr } = await folder.run(['doctor'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/^ok {7}version {13}SQLite \d/m)
    expect(stdout).toMatch(/^ok {7}integrity {11}quick_check found no errors$/m)
    expect(stdout).toMatch(/holdfast\.db is healthy\n$/)
    const told = JSON.parse((await folder.run(['doctor', '--json'])).stdout)
    expect(told).toMatchObject({ problems: 0, warnings: 0, address: expect.stringContaining('holdfast.db') })
    expect(told.findings.every(({ verdict, fix }: Record<string, unknown>) => verdict === 'ok' && fix === null)).toBe(
      true,
    )
  })

  it('prints warnings with advice, and still exits with 0', async () => {
    const folder = makeFolder()
    await folder.run(['submit', '-t', 'mail', '-i', '1', '--queue', 'post'])
    await folder.run(['pause', 'post'])
    chmodSync(join(folder.path, 'holdfast.db'), 0o644)
    const { code, stdout } = await folder.run(['doctor'])
    expect(code).toBe(0)
    expect(stdout).toMatch(/^warning {2}privacy .*mode 644.*\n +→ chmod 600 /m)
    expect(stdout).toMatch(/^warning {2}queue .*'post' is paused, and 1 task waits in it\n +→ holdfast resume post$/m)
    expect(stdout).toMatch(/: 0 problems, 2 warnings\n$/)
  })

  it('names a process whose clock was ten years ahead, and takes back what it has dated', async () => {
    const folder = makeFolder()
    const ahead = 'const now = Date.now; Date.now = () => now() + 3652 * 864e5'
    const node = ['--import', `data:text/javascript,${encodeURIComponent(ahead)}`]
    const submit = ['submit', '-t', 'mail', '-i', '1']
    expect((await folder.run(submit, { node })).code).toBe(0)
    expect((await folder.run(submit)).code).toBe(0)
    const found = await folder.run(['doctor'])
    expect(found.code).toBe(6)
    expect(found.stdout).toMatch(
      /^problem {2}clock-mark .*\/\d+ has used the file with a clock that showed 20\d\d-.*1 tasks? and 0/m,
    )
    expect(found.stdout).toContain('holdfast doctor --repair-clock')
    const repaired = await folder.run(['doctor', '--repair-clock'])
    expect(repaired.code).toBe(0)
    expect(repaired.stdout).toMatch(/^repaired: 1 task, 0 leases and 0 schedules count from now$/m)
    await folder.withClient(async (client) => {
      for (const { availableAt } of (await client.list()).tasks) expect(availableAt).toBeLessThanOrEqual(Date.now())
    })
  })

  it('finds a damaged page, and exits with 6', async () => {
    const folder = makeFolder()
    await submitMany(folder, 3_000)
    const path = join(folder.path, 'holdfast.db')
    const file = openSync(path, 'r+')
    const page = 8_192
    const pages = statSync(path).size / page
    // The list of tables, and what connect reads, are at the beginning.
    for (let n = 60; n < Math.min(pages, 70); n++) writeSync(file, Buffer.alloc(page, 0xa5), 0, page, n * page)
    closeSync(file)
    const { code, stdout } = await folder.run(['doctor', '--json'])
    const { problems, findings } = JSON.parse(stdout)
    expect(code).toBe(6)
    expect(problems).toBeGreaterThan(0)
    expect(findings.find(({ check }: { check: string }) => check === 'integrity')).toMatchObject({
      verdict: 'problem',
      fix: expect.stringContaining('.recover'),
    })
  })

  it('creates no store: without one it says so and exits with 5', async () => {
    const folder = makeFolder()
    expect(await folder.run(['doctor'])).toMatchObject({ code: 5, stdout: '' })
    expect(folder.has('holdfast.db')).toBe(false)
  })
})
