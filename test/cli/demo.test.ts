/** `holdfast demo`: the show ends well, and its sums can fail. */
import { readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { account } from '../../src/cli/demo/account.ts'
import type { KindName } from '../../src/cli/demo/kinds.ts'
import { shares } from '../../src/cli/demo/scene.ts'
import type { HistoryEntry, Task } from '../../src/index.ts'
import { makeFolder } from './shell.ts'

describe('the demo', () => {
  const folder = makeFolder()

  it('kills a worker, loses nothing, and keeps the store that it was given', { timeout: 60_000 }, async () => {
    const { code, stdout, stderr } = await folder.run(['demo', '--json', '--url', folder.url])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const summary = JSON.parse(stdout)
    expect(summary).toMatchObject({
      isComplete: true,
      submitted: 188,
      accounted: 188,
      killed: expect.stringMatching(/^worker-\d$/),
      address: folder.url,
    })
    for (const { submitted, completed, dead, expired, cancelled, missing } of summary.kinds) {
      expect(completed + dead + expired + cancelled).toBe(submitted)
      expect(missing).toBe(0)
    }
    expect(summary.orphans.length).toBeGreaterThan(0)
    await folder.withClient(async (client) => {
      const { id, foundBy } = summary.orphans[0]
      const history = await client.history(id)
      const lost = history.findIndex(({ move }) => move === 'lose-lease')
      expect(history[lost - 1]).toMatchObject({ move: 'claim', by: summary.killed })
      expect(history[lost]).toMatchObject({ by: foundBy })
    })
  })

  it('says in plain lines what happens when it is piped, and leaves no folder behind', {
    timeout: 60_000,
  }, async () => {
    const { code, stdout } = await folder.run(['demo'], { env: { TMPDIR: folder.path } })
    expect(code).toBe(0)
    expect(stdout).toMatch(/worker-\d was killed with SIGKILL in the middle of its work/)
    expect(stdout).toMatch(/lost its worker: lease expired, found by worker-\d, runs again/)
    expect(stdout).toMatch(/\nnothing lost: 188 submitted, 188 accounted for\n$/)
    expect(stdout).not.toContain('\u001b')
    expect(readdirSync(folder.path).filter((name) => name.startsWith('holdfast-demo'))).toEqual([])
  })
})

/** Only what the sums look at. */
const task = (facts: Partial<Task>): Task =>
  ({ attempts: 1, retryCount: 0, rescheduleCount: 0, history: [], ...facts }) as Partial<Task> as Task

describe('the sums of the demo', () => {
  const submitted = new Map<string, KindName>([
    ['a', 'ok'],
    ['b', 'poison'],
  ])
  const a = task({ id: 'a', type: 'ok', status: 'completed' })
  const b = task({ id: 'b', type: 'poison', status: 'failed' })

  it('match when every task has ended', () => {
    expect(account(submitted, [a, b], null)).toMatchObject({ submitted: 2, accounted: 2, isComplete: true })
  })

  it('do not match when a task is lost, is not over, or was never submitted', () => {
    expect(account(submitted, [b], null)).toMatchObject({ accounted: 1, isComplete: false })
    expect(account(submitted, [task({ ...a, status: 'running' }), b], null).isComplete).toBe(false)
    expect(account(submitted, [a, b, task({ id: 'c', status: 'completed' })], null).isComplete).toBe(false)
  })

  it('do not match when a task of the killed worker never ran again', () => {
    const entry = (n: number, move: string, by: string): HistoryEntry => ({ n, at: n, move, by, to: 'pending', op: '' })
    const history = [entry(1, 'submit', 'x'), entry(2, 'claim', 'worker-1'), entry(3, 'lose-lease', 'worker-2')]
    const left = account(submitted, [task({ ...a, history }), b], 'worker-1')
    expect(left.orphans).toMatchObject([{ id: 'a', foundBy: 'worker-2', ranAgainOn: null }])
    expect(left.isComplete).toBe(false)
    const again = [...history, entry(4, 'claim', 'worker-3')]
    expect(account(submitted, [task({ ...a, history: again }), b], 'worker-1').isComplete).toBe(true)
  })
})

describe('a bar', () => {
  it('is always as wide as it should be, and in proportion', () => {
    expect(shares([0, 0, 0], 10)).toEqual([0, 0, 10])
    expect(shares([1, 1, 1], 10)).toEqual([3, 4, 3])
    expect(shares([50, 0, 50], 40)).toEqual([20, 0, 20])
    for (let a = 0; a < 20; a++) expect(shares([a, 7, 13], 40).reduce((sum, part) => sum + part)).toBe(40)
  })
})
