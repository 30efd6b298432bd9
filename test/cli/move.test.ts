/** Verbs that move tasks by hand: cancel and retry, several at once. */
import { describe, expect, it } from 'vitest'
import { makeFolder } from './shell.ts'

describe('cancel and retry', () => {
  const folder = makeFolder()
  const submit = async (...args: string[]): Promise<string> =>
    (await folder.run(['submit', '-t', 't', '-i', '1', ...args])).stdout.trim()
  const unknown = '00000000-0000-7000-8000-000000000000'

  it('cancel prints a result for each id, and exits with the worst code', async () => {
    const [one, two] = [await submit(), await submit()]
    const { code, stdout, stderr } = await folder.run(['cancel', one, unknown, two, '--reason', 'not needed'])
    expect(code).toBe(3)
    expect(stdout).toBe(`${one} cancelled\n${two} cancelled\n`)
    expect(stderr).toBe(`${unknown} error: there is no task ${unknown} (TASK_NOT_FOUND)\n`)
    expect((await folder.run(['history', one])).stdout).toMatch(
      /^Version 2: cancelled \(cancelled by \S+@\S+, reason: not needed\)$/m,
    )
    expect(await folder.run(['cancel', one])).toMatchObject({ code: 0, stdout: `${one} cancelled\n` })
  })

  it('cancel asks a running task to stop', async () => {
    const id = await submit()
    await folder.withClient((client) => client.claim(id, { workerId: 'worker-1' }))
    expect((await folder.run(['cancel', id])).stdout).toBe(`${id} asked to stop (running on worker-1)\n`)
  })

  it('cancel of an ended task exits with 4', async () => {
    const id = await submit()
    await folder.withClient(async (client) => (await client.claim(id, { workerId: 'worker-1' })).complete())
    const { code, stdout } = await folder.run(['cancel', id, '--json'])
    expect(code).toBe(4)
    expect(JSON.parse(stdout)).toEqual([
      { id, error: { code: 'CANNOT_CANCEL', message: `task ${id} is completed`, fix: expect.any(String) } },
    ])
  })

  it('retry runs a cancelled task again, and refuses a pending one', async () => {
    const id = await submit()
    await folder.run(['cancel', id])
    expect(await folder.run(['retry', id])).toMatchObject({
      code: 0,
      stdout: `${id} pending (retry_count: 0, max_retries: 3)\n`,
    })
    expect((await folder.run(['retry', id])).code).toBe(4)
  })

  it('retry --json gives the tasks as they are now', async () => {
    const id = await submit()
    await folder.run(['cancel', id])
    const [result] = JSON.parse((await folder.run(['retry', id, '--json'])).stdout)
    expect(result).toMatchObject({ id, task: { id, status: 'pending', revision: 3 } })
  })
})
