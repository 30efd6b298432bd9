/** `holdfast doctor`: what is wrong with a store, and how to mend it. */
import { chmodSync, closeSync, openSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Folder, makeFolder } from './shell.ts'

const submitMany = (folder: Folder, count: number): Promise<unknown> =>
  folder.withClient((client) =>
    client.submitMany(Array.from({ length: count }, (_, n) => ({ type: 'mail', input: 'x'.repeat(500) + n }))),
  )

describe('doctor', () => {
  it('says that a store is well, one line a check, and ends with 0', async () => {
    const folder = makeFolder()
    await folder.run(['init'])
    const { code, stdout, stderr } = await folder.run(['doctor'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/^ok {7}version {13}SQLite \d/m)
    expect(stdout).toMatch(/^ok {7}integrity {11}quick_check found no fault$/m)
    expect(stdout).toMatch(/holdfast\.db is well\n$/)
    const told = JSON.parse((await folder.run(['doctor', '--json'])).stdout)
    expect(told).toMatchObject({ problems: 0, warnings: 0, address: expect.stringContaining('holdfast.db') })
    expect(told.findings.every(({ verdict, mend }: Record<string, unknown>) => verdict === 'ok' && mend === null)).toBe(
      true,
    )
  })

  it('warns of what is not good and says what to do, and still ends with 0', async () => {
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

  it('finds a damaged page, and ends with 6', async () => {
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
      mend: expect.stringContaining('.recover'),
    })
  })

  it('makes no store: without one it says so and ends with 5', async () => {
    const folder = makeFolder()
    expect(await folder.run(['doctor'])).toMatchObject({ code: 5, stdout: '' })
    expect(folder.has('holdfast.db')).toBe(false)
  })
})
