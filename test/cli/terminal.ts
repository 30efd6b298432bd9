/** Runs the real program on a terminal: by `script` of util-linux, or by Python's pty. */
import { spawn, spawnSync } from 'node:child_process'
import { exitOf, type Folder, LAUNCHER, type Ran } from './shell.ts'

const PYTHON = 'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))'

const works = (command: string, ...args: string[]): boolean => spawnSync(command, args).status === 0

/** The command that gives another one a terminal; a text: why there is none. */
const findTerminal = (): ((command: string) => [string, ...string[]]) | string => {
  if (works('script', '-qec', 'true', '/dev/null')) return (command) => ['script', '-qec', command, '/dev/null']
  if (works('python3', '-c', PYTHON, 'true')) return (command) => ['python3', '-c', PYTHON, 'sh', '-c', command]
  return 'neither script (of util-linux) nor python3 can make a terminal here'
}

const terminal = findTerminal()

/** Empty when there is a terminal. */
export const noTerminal = typeof terminal === 'string' ? terminal : ''

export interface TerminalOptions {
  /** What is typed when the program has said something like it. */
  readonly type?: readonly (readonly [when: RegExp, keys: string])[]
}

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`

/** 100 columns wide. What is said on standard output and on standard error comes out together. */
export const runOnTerminal = async (
  folder: Folder,
  args: readonly string[],
  { type = [] }: TerminalOptions = {},
): Promise<Ran> => {
  if (typeof terminal === 'string') throw new Error(terminal)
  const program = [process.execPath, LAUNCHER, ...args].map(quoted).join(' ')
  const [command, ...rest] = terminal(`stty cols 100 rows 40; exec ${program}`)
  const { FORCE_COLOR: _, NO_COLOR: __, HOLDFAST_URL: ___, CI: ____, ...env } = process.env
  const child = spawn(command, rest, { cwd: folder.path, env: { ...env, TERM: 'xterm-256color' }, stdio: 'pipe' })
  const waiting = [...type]
  let said = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text
    while (waiting[0]?.[0].test(said)) child.stdin.write(waiting.shift()![1])
  })
  const code = await exitOf(child)
  return { code, stdout: said.replaceAll('\r\n', '\n'), stderr: '' }
}
