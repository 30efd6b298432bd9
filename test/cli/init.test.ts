/** Making a store, and bringing one up to date, from a shell. */
import { describe, expect, it } from 'vitest'
import { makeFolder } from './shell.ts'

describe('init', () => {
  const folder = makeFolder()

  it('creates the file and says so; a second time it says that the store exists', async () => {
    expect(await folder.run(['init', 'sqlite:./new.db'])).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^created a store at .*new\.db\n$/),
      stderr: '',
    })
    expect(folder.has('new.db')).toBe(true)
    expect((await folder.run(['init', '--url', 'sqlite:./new.db'])).stdout).toMatch(/^a store already exists at .*\n$/)
  })

  it('--json prints the address and whether the store was created', async () => {
    const env = { HOLDFAST_URL: 'sqlite:./here.db' }
    const [first, second] = [
      await folder.run(['init', '--json'], { env }),
      await folder.run(['init', '--json'], { env }),
    ]
    expect(JSON.parse(first.stdout)).toEqual({ address: expect.stringContaining('here.db'), created: true })
    expect(JSON.parse(second.stdout)).toEqual({ address: expect.stringContaining('here.db'), created: false })
  })

  it('--accept-restore lets the fences of what may run again leap', async () => {
    const env = { HOLDFAST_URL: 'sqlite:./restored.db' }
    await folder.run(['init'], { env })
    await folder.run(['submit', '-t', 'mail', '-i', '1'], { env })
    const { code, stdout } = await folder.run(['init', '--accept-restore', '--json'], { env })
    expect([code, JSON.parse(stdout)]).toEqual([0, { address: expect.any(String), created: false, accepted: 1 }])
    const { stdout: list } = await folder.run(['list', '--json'], { env })
    expect(list).toMatch(/"attempts": ?1000000/)
  })

  it('refuses invalid addresses, and memory', async () => {
    expect((await folder.run(['init', 'ftp://x'])).code).toBe(2)
    expect((await folder.run(['init', 'memory:'])).code).toBe(2)
  })
})

describe('migrate', () => {
  const folder = makeFolder()

  it('makes no store', async () => {
    const { code, stderr } = await folder.run(['migrate', 'sqlite:./nothing.db'])
    expect(code).toBe(5)
    expect(stderr).toContain('holdfast init')
    expect(folder.has('nothing.db')).toBe(false)
  })

  it('says that a store of this release is up to date', async () => {
    await folder.run(['init', 'sqlite:./a.db'])
    expect((await folder.run(['migrate', 'sqlite:./a.db'])).stdout).toMatch(/a\.db is up to date\n$/)
    const { stdout } = await folder.run(['migrate', 'sqlite:./a.db', '--json'])
    expect(JSON.parse(stdout)).toEqual({ address: expect.stringContaining('a.db'), migrated: false })
  })
})
