/** The program as a whole: help, the launcher, colours, pipes, the documentation. */
import { spawnSync } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { withPrintedParts } from '../../scripts/print-cli-docs.ts'
import { EXIT_CODES } from '../../src/cli/output/exit-codes.ts'
import { makeProgram } from '../../src/cli/program/program.ts'
import { CODES } from '../../src/index.ts'
import { LAUNCHER, makeFolder } from './shell.ts'

const VERBS = makeProgram(() => {})
  .commands.map((command) => command.name())
  .filter((name) => name !== 'help')

describe('help', () => {
  const folder = makeFolder()

  it.each(VERBS)('of %s has an example and the global options', async (verb) => {
    const { code, stdout, stderr } = await folder.run([verb, '--help'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(new RegExp(`\\nExamples?:\\n {2}.*holdfast ${verb}`))
    expect(stdout).toContain('--json')
    expect(stdout).not.toMatch(/[?!.]\.(\s|$)/)
  })

  it('is printed without arguments, and names every verb', async () => {
    const { code, stdout } = await folder.run([])
    expect(code).toBe(0)
    for (const verb of VERBS) expect(stdout).toMatch(new RegExp(`^ {2}${verb}\\b`, 'm'))
  })

  it('an unknown verb is bad input, with a suggestion', async () => {
    const { code, stdout, stderr } = await folder.run(['lst'])
    expect({ code, stdout, stderr }).toEqual({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining("unknown command 'lst' (Did you mean list?)"),
    })
  })

  it('--version prints the version of the package', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
    expect((await folder.run(['--version'])).stdout).toBe(`${version}\n`)
  })
})

describe('colours', () => {
  const folder = makeFolder()

  it('are used when forced, and not with NO_COLOR or --no-color', async () => {
    await folder.run(['submit', '-t', 't', '-i', '1'])
    const env = { FORCE_COLOR: '1' }
    expect((await folder.run(['list'], { env })).stdout).toContain('\u001b[')
    expect((await folder.run(['list', '--no-color'], { env })).stdout).not.toContain('\u001b[')
    expect((await folder.run(['list'], { env: { NO_COLOR: '1' } })).stdout).not.toContain('\u001b[')
    expect((await folder.run(['list'])).stdout).not.toContain('\u001b[')
  })
})

describe('the launcher', () => {
  const folder = makeFolder()
  const pretend = (version: string): string[] => [
    '--import',
    `data:text/javascript,Object.defineProperty(process,'versions',{value:{node:'${version}'}})`,
  ]

  it.each(['20.20.2', '22.22.2', '24.14.9'])(
    'hands over to the Node of the checkout when run by Node %s, exit code included',
    async (version) => {
      expect(await folder.run(['--version'], { node: pretend(version) })).toMatchObject({ code: 0, stderr: '' })
      expect(await folder.run(['nope'], { node: pretend(version) })).toMatchObject({ code: 2, stdout: '' })
    },
  )
})

describe('a standard output without space', () => {
  it('is told, and is not a success', (context) => {
    if (!existsSync('/dev/full')) return context.skip('only Linux has /dev/full, a file that is always full')
    const full = openSync('/dev/full', 'w')
    const { status, stderr } = spawnSync(process.execPath, [LAUNCHER, '--version'], { stdio: ['ignore', full, 'pipe'] })
    closeSync(full)
    expect([status, String(stderr)]).toEqual([1, expect.stringContaining('standard output cannot be written: ENOSPC')])
  })
})

describe('docs/cli.md', () => {
  const text = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8')

  it('has the help and the exit codes as the code has them (else run node scripts/print-cli-docs.ts)', () => {
    expect(text).toBe(withPrintedParts(text))
    for (const code of Object.keys(CODES)) expect(text).toContain(`\`${code}\``)
    expect(Object.keys(EXIT_CODES).sort()).toEqual(Object.keys(CODES).sort())
  })
})
