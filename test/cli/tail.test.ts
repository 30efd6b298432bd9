/** `holdfast tail`: follows what other processes do, until it is told to end. */
import type { ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import { describe, expect, it } from 'vitest'
import { exitOf, type Folder, linesOf, makeFolder, normalised } from './shell.ts'

/** From here on nothing is missed. */
const isFollowing = async (child: ChildProcess): Promise<void> => {
  for await (const line of createInterface({ input: child.stderr! })) if (line.startsWith('following ')) return
}

const tail = async (folder: Folder, ...args: string[]): Promise<ChildProcess> => {
  const child = folder.start(['tail', ...args])
  await isFollowing(child)
  return child
}

describe('tail', () => {
  it('prints the moves of a worker in another process, one per line, and exits with 0 on SIGINT', async () => {
    const folder = makeFolder()
    folder.write('tasks.mjs', 'export const double = (input) => input * 2')
    // Claimed and completed between two looks, though it has waited since before.
    await folder.run(['submit', '-t', 'double', '-i', '1'])
    const child = await tail(folder)
    const ended = exitOf(child)
    const lines = linesOf(child)
    await folder.run(['worker', './tasks.mjs', '--drain'])
    const claimed = await lines.until(/running/)
    const completed = await lines.until(/completed/)
    const words = (line: string) =>
      normalised(line)
        .replaceAll(/ +/g, ' ')
        .replaceAll(/by \S+$/g, 'by WHO')
    expect(words(claimed)).toBe('INSTANT running ID double default claimed by WHO')
    expect(words(completed)).toBe('INSTANT completed ID double default by WHO')
    child.kill('SIGINT')
    expect(await ended).toBe(0)
  })

  it('prints only what matches the filter, as one object per line with --json', async () => {
    const folder = makeFolder()
    await folder.run(['submit', '-t', 'before', '-i', '1', '--queue', 'mail'])
    const child = folder.start(['tail', '--json', '--since', '1h', '--queue', 'mail', '--tag', 'team=blue'])
    const ended = exitOf(child)
    const lines = linesOf(child)
    await folder.run(['submit', '-t', 'red', '-i', '1', '--queue', 'mail', '--tag', 'team=red'])
    await folder.run(['submit', '-t', 'other', '-i', '1', '--tag', 'team=blue'])
    const { stdout: id } = await folder.run([
      'submit',
      '-t',
      'blue',
      '-i',
      '1',
      '--queue',
      'mail',
      '--tag',
      'team=blue',
    ])
    const first = await lines.until(/./)
    expect(JSON.parse(first)).toMatchObject({
      id: id.trim(),
      type: 'blue',
      queue: 'mail',
      tags: { team: 'blue' },
      n: 1,
      move: 'submit',
      to: 'pending',
      at: expect.stringMatching(/^\d{4}-.*Z$/),
    })
    child.kill('SIGTERM')
    expect(await ended).toBe(0)
  })

  it('ends when its output is closed', async () => {
    const folder = makeFolder()
    await folder.run(['submit', '-t', 'one', '-i', '1'])
    const child = await tail(folder)
    const ended = exitOf(child)
    child.stdout!.destroy()
    await folder.run(['submit', '-t', 'two', '-i', '1'])
    await folder.run(['submit', '-t', 'three', '-i', '1'])
    expect(await ended).toBe(0)
  })

  it.each([
    [['--since', 'yesterday'], 2],
    [['--queue', 'not a name'], 2],
    [['--tag', 'x'], 2],
  ])('%j is bad input', async (args, code) => {
    const folder = makeFolder()
    await folder.run(['submit', '-t', 'one', '-i', '1'])
    expect(await folder.run(['tail', ...args])).toMatchObject({ code, stdout: '' })
  })
})
