/** Builds the program that parses an argv from the table of verbs. */
import { Command } from 'commander'
import { version } from '../../version.ts'
import { VERBS, type Verb } from './verbs.ts'

/** `finish` gets the exit code. Parse errors are thrown, not printed. */
export const makeProgram = (finish: (code: number) => void): Command => {
  const program = new Command('holdfast')
    .description('A durable task queue on the storage you already have.')
    .option('--url <address>', 'the store (default: HOLDFAST_URL, the config file, sqlite:./holdfast.db)')
    .option('--json', 'print JSON, including errors')
    .option('--no-color', 'no colours; the variable NO_COLOR does the same')
    .version(version(), '--version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .helpCommand('help [verb]', 'print the help of a verb')
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({ outputError: () => {} })
    .exitOverride()
    .addHelpText(
      'after',
      "\nExample:\n  holdfast submit -t hello -i '{}' && holdfast worker ./tasks.ts --drain && holdfast list",
    )
  for (const verb of VERBS) program.addCommand(makeCommand(verb, finish))
  return program
}

const makeCommand = (verb: Verb, finish: (code: number) => void): Command => {
  const command = new Command(verb.name)
    .summary(verb.summary)
    .description(
      `${capitalised(verb.summary)}${verb.summary.endsWith('?') ? '' : '.'}${verb.details === undefined ? '' : `\n${verb.details}`}`,
    )
    .helpOption('-h, --help', 'print help')
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({ outputError: () => {} })
    .exitOverride()
    .addHelpText(
      'after',
      `\n${verb.examples.length > 1 ? 'Examples' : 'Example'}:\n${verb.examples.map((line) => `  ${line}`).join('\n')}`,
    )
  if (verb.alias !== undefined) command.alias(verb.alias)
  if (verb.args !== undefined) command.arguments(verb.args)
  for (const [flags, meaning] of verb.options ?? []) addOption(command, flags, meaning)
  if (verb.verbs !== undefined) {
    for (const one of verb.verbs) command.addCommand(makeCommand(one, finish))
    return command.helpCommand(false)
  }
  if (verb.passesFlags) command.allowUnknownOption()
  return command.action(async () => {
    if (verb.settings !== false) {
      const { applySettings } = await import('./settings.ts')
      await applySettings(command)
    }
    const options = command.optsWithGlobals()
    if (options['color'] === false) forbidColours()
    const { run } = await verb.load!()
    finish(await run(command.args, options as never))
  })
}

const addOption = (command: Command, flags: string, meaning: string): void => {
  if (!flags.endsWith('…>')) return void command.option(flags, meaning)
  const collect = (value: string, before: readonly string[] = []): readonly string[] => [...before, value]
  command.option(flags.replace('…>', '>'), `${meaning}; may be repeated`, collect)
}

const forbidColours = (): void => {
  delete process.env['FORCE_COLOR']
  process.env['NO_COLOR'] = '1'
}

const capitalised = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
