/** Completes a half-typed line: shells call `holdfast complete -- WORDS`, which is not a public verb. */
import root, { type Command as Completed } from '@bomb.sh/tab'
import type { Command } from 'commander'
import { VIEWS } from '../../index.ts'
import { makeProgram } from './program.ts'

/** Values that need no store, by the name of the option or argument. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  status: VIEWS,
  shell: ['bash', 'zsh', 'fish', 'powershell'],
}

export const complete = (words: readonly string[]): void => {
  const program = makeProgram(() => {})
  addOptions(root, program)
  addCommands(program, '', program)
  root.parse([...words])
}

const addCommands = (parent: Command, path: string, program: Command): void => {
  for (const command of parent.commands) {
    for (const name of [command.name(), ...command.aliases()]) {
      const whole = path === '' ? name : `${path} ${name}`
      const completed = root.command(whole, command.summary())
      addOptions(completed, command)
      addOptions(completed, program)
      for (const argument of command.registeredArguments)
        completed.argument(argument.name(), valuesOf(argument.name()), argument.variadic)
      addCommands(command, whole, program)
    }
  }
}

const addOptions = (completed: Completed, command: Command): void => {
  for (const { long, short, required, optional, description } of command.createHelp().visibleOptions(command)) {
    const name = long?.slice(2)
    if (name === undefined) continue
    const alias = short?.slice(1)
    if (required || optional) completed.option(name, description, valuesOf(name), alias)
    else completed.option(name, description, alias)
  }
}

const valuesOf =
  (name: string) =>
  (add: (value: string, description: string) => void): void => {
    for (const value of VALUES[name] ?? []) add(value, '')
  }
