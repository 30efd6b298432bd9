/** Generates parts of docs/cli.md from the code: the help of every verb, and the exit codes. A test fails if they are stale. */
import { readFileSync, writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import { EXIT_CODES, EXIT_MEANINGS } from '../src/cli/output/exit-codes.ts'
import { makeProgram } from '../src/cli/program/program.ts'

const FILE = new URL('../docs/cli.md', import.meta.url)
const PART = /(<!-- printed: ([^>]+) -->\n)[\s\S]*?(<!-- end -->)/g

/** Returns the text with every generated part replaced. */
export const withPrintedParts = (text: string): string =>
  text.replace(PART, (_, begin: string, name: string, end: string) => `${begin}\n${partOf(name)}\n\n${end}`)

const partOf = (name: string): string => {
  if (name === 'verbs') return verbs()
  if (name === 'exit codes') return exitCodes()
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
