/** Completion: the scripts for the shells, and what those ask for. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { makeFolder } from './shell.ts'

describe('completion', () => {
  const folder = makeFolder()
  const asked = async (...words: string[]): Promise<string[]> => {
    const { code, stdout, stderr } = await folder.run(['complete', '--', ...words])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    return stdout
      .split('\n')
      .filter((line) => !/^(:\d+)?$/.test(line))
      .map((line) => line.split('\t')[0]!)
  }

  it.each(['bash', 'zsh', 'fish', 'powershell'])('of %s asks us what could come next', async (shell) => {
    const { code, stdout, stderr } = await folder.run(['completions', shell])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/holdfast\b.*\bcomplete\b/)
  })

  it('is a script that bash can read', async () => {
    const path = folder.write('holdfast.bash', (await folder.run(['completions', 'bash'])).stdout)
    await expect(promisify(execFile)('bash', ['-n', path])).resolves.toMatchObject({ stderr: '' })
  })

  it('is refused for an unknown shell', async () => {
    expect(await folder.run(['completions', 'tcsh'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("SHELL 'tcsh' is not one of bash, zsh, fish, powershell"),
    })
  })

  it('offers verbs, their options, and values that are known without a store', async () => {
    expect(await asked('re')).toEqual(['retry', 'replay', 'retention', 'resume'])
    expect(await asked('replay', '--ca')).toEqual(['--canary', '--canary-timeout'])
    expect(await asked('list', '--status', 're')).toEqual(['ready', 'retrying'])
    expect(await asked('completions', '')).toEqual(['bash', 'zsh', 'fish', 'powershell'])
    expect(await asked('list', '--ur')).toEqual(['--url'])
    expect(folder.has('holdfast.db')).toBe(false)
  })
})
