/** Generates parts of docs/cli.md from the code: the help of every verb, and the exit codes. A test fails if they are stale. */
import { readFileSync, writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import { EXIT_CODES, EXIT_MEANINGS } from '../src/cli/output/exit-codes.ts'
import { makeProgram } from '../src/cli/program/program.ts'
import { defaultOf, nameOf, settable, variableOf } from '../src/cli/program/settings.ts'

const FILE = new URL('../docs/cli.md', import.meta.url)
const PART = /(<!-- printed: ([^>]+) -->\n)[\s\S]*?(<!-- end -->)/g

/** Returns the text with every generated part replaced. */
export const withPrintedParts = (text: string): string =>
  text.replace(PART, (_, begin: string, name: string, end: string) => `${begin}\n${partOf(name)}\n\n${end}`)

const partOf = (name: string): string => {
  if (name === 'verbs') return verbs()
  if (name === 'exit codes') return exitCodes()
  if (name === 'settings') return settings()
  throw new Error(`docs/cli.md asks for '${name}', which this script does not print`)
}

/** A family of verbs is documented by its members. */
const leavesOf = (command: Command): Command[] =>
  command.commands
    .filter((one) => one.name() !== 'help')
    .flatMap((one) => (one.commands.length > 0 ? leavesOf(one) : [one]))

const verbs = (): string =>
  leavesOf(makeProgram(() => {}))
    .map((command) => {
      let help = ''
      const width = 100
      command
        .configureOutput({ writeOut: (text) => (help += text), getOutHelpWidth: () => width })
        .configureHelp({ showGlobalOptions: false })
        .outputHelp()
      const family = command.parent?.parent ? `${command.parent.name()} ` : ''
      const names = family + [command.name(), ...command.aliases()].join(', ')
      return `### ${names}\n\n\`\`\`text\n${help.trim()}\n\`\`\``
    })
    .join('\n\n')

/** Every option of every verb, with its variable and its key in the config file. */
const settings = (): string => {
  const program = makeProgram(() => {})
  const rows = [program, ...leavesOf(program)].flatMap((command) =>
    settable(command).map((option) => {
      const { long, description } = option
      const value = defaultOf(option)
      const family = command.parent?.parent ? `${command.parent.name()} ` : ''
      return `| ${command === program ? 'all' : family + command.name()} | \`${long}\` | \`${variableOf(command, option)}\` | \`${nameOf(command, option.attributeName())}\` | ${
        value === null ? '' : `\`${String(value)}\``
      } | ${description
        .replace(/ *\(default: .*?\)/, '')
        .replaceAll('|', '\\|')
        .replaceAll('<', '&lt;')} |`
    }),
  )
  return [
    '| verb | flag | variable | key in the file | default | meaning |',
    '|---|---|---|---|---|---|',
    ...rows,
  ].join('\n')
}

const exitCodes = (): string => {
  const rows = Object.entries(EXIT_MEANINGS).map(([exit, meaning]) => {
    const codes = Object.entries(EXIT_CODES)
      .filter(([, of]) => of === Number(exit))
      .map(([code]) => `\`${code}\``)
    return `| ${exit} | ${meaning} | ${codes.join(' ')} |`
  })
  return ['| exit code | meaning | error codes |', '|---|---|---|', ...rows].join('\n')
}

if (import.meta.main) writeFileSync(FILE, withPrintedParts(readFileSync(FILE, 'utf8')))
