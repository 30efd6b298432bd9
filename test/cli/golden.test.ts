/**
 * What each verb says to people, kept in files: piped, and on a terminal. After a change on purpose:
 * `vitest run --project doors test/cli/golden.test.ts -u`, and read the difference.
 */
import { readdirSync } from 'node:fs'
import { hostname, userInfo } from 'node:os'
import { beforeAll, describe, expect, it } from 'vitest'
import { makeProgram } from '../../src/cli/program/program.ts'
import { COMMANDS, setScene, type Typed } from './golden-scene.ts'
import { type Folder, makeFolder, normalised, type Ran } from './shell.ts'
import { noTerminal, runOnTerminal } from './terminal.ts'

/** Verbs that are shown elsewhere: a show of ten seconds; a server; measurements; between two stores. */
const ELSEWHERE: ReadonlySet<string> = new Set([
  'help',
  'demo',
  'serve',
  'monitor',
  'bench',
  'move',
  'export',
  'import',
  'get',
])

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&')

/** What differs from run to run as words; runs of spaces as two, because columns are as wide as what was in them. */
const told = (text: string, folder: Folder): string =>
  normalised(
    text
      .replaceAll(/01a2f7c4-5b1e-7c3d-9f00-0000000000(\d\d)/g, 'ID-$1')
      .replaceAll(new RegExp(`(/private)?${escaped(folder.path)}`, 'g'), 'FOLDER'),
  )
    .replaceAll(new RegExp(`${escaped(userInfo().username)}@${escaped(hostname())}`, 'g'), 'OPERATOR')
    .replaceAll(new RegExp(`user ${escaped(userInfo().username)}\\b`, 'g'), 'user OPERATOR')
    .replaceAll(new RegExp(`${escaped(hostname())}/\\d+/\\S+?(?=[ ,\\n])`, 'g'), 'WORKER')
    .replaceAll(/\b\d+ms\b/g, 'TIME')
    .replaceAll(/\b\d+(\.\d+)? [kMG]B\b/g, 'SIZE')
    .replaceAll(/SQLite \d+\.\d+\.\d+/g, 'SQLite VERSION')
    .replaceAll(/agree to \S+/g, 'agree to TIME')
    .replaceAll('\u001b', '␛')
    // Of the machine, not of the store.
    .replaceAll(/^.*disk-space.*\n/gm, '')
    .replaceAll('^C', '')
    .replaceAll(/ +(?=␛\[(22|39)m)/g, '')
    .replaceAll(/(?<=\S) {2,}/g, '  ')
    .replaceAll('\r', '␍')

const shown = ({ args }: Typed, { code, stdout, stderr }: Ran, folder: Folder): string =>
  told(
    [
      `$ holdfast ${args.map((arg) => (/[ *]/.test(arg) ? `'${arg}'` : arg)).join(' ')}\n`,
      stdout,
      stderr === '' ? '' : `--- standard error\n${stderr}`,
      `--- exit ${code}\n`,
    ].join(''),
    folder,
  )

/** A tail ends when it is told to. */
const runPiped = async (folder: Folder, { args }: Typed): Promise<Ran> => {
  if (args[0] !== 'tail') return folder.run(args)
  const child = folder.start(args)
  const read = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name]!.setEncoding('utf8').on('data', (text) => {
      read[name] += text
      if (read.stdout.includes('completed')) child.kill('SIGINT')
    })
  return new Promise((done) => child.once('close', (code) => done({ code, ...read })))
}

const HOW = {
  piped: runPiped,
  terminal: (folder: Folder, { args, type }: Typed): Promise<Ran> =>
    runOnTerminal(folder, args, type === undefined ? {} : { type }),
} as const

describe.each(['piped', 'terminal'] as const)('%s', (how) => {
  const folder = makeFolder()

  beforeAll(() => setScene(folder))

  it.for(Object.entries(COMMANDS))('%s says what its golden file has', async ([verb, commands], context) => {
    if (how === 'terminal' && noTerminal !== '') context.skip(noTerminal)
    let text = ''
    for (const command of commands) text += `${shown(command, await HOW[how](folder, command), folder)}\n`
    await expect(text).toMatchFileSnapshot(`./golden/${verb}.${how}.txt`)
  })
})

it('every verb has its golden files, and no file is left over', () => {
  const verbs = makeProgram(() => {}).commands.map((command) => command.name())
  expect(verbs.filter((verb) => !ELSEWHERE.has(verb) && !(verb in COMMANDS))).toEqual([])
  const files = Object.keys(COMMANDS).flatMap((verb) => [`${verb}.piped.txt`, `${verb}.terminal.txt`])
  expect(readdirSync(new URL('./golden/', import.meta.url)).sort()).toEqual(files.sort())
})
