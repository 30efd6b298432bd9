/** `holdfast config show [VERB]`: settings, their values and their sources. */
import type { Command } from 'commander'
import { HoldfastError } from '../../index.ts'
import { EXIT } from '../output/exit-codes.ts'
import { out, outJson, paint, printable } from '../output/render.ts'
import { addressOf, configFile } from '../program/config.ts'
import { makeProgram } from '../program/program.ts'
import type { GlobalOptions } from '../program/session.ts'
import { applySettings, type OptionSetting, settingsOf } from '../program/settings.ts'

export const run = async (words: readonly string[], options: GlobalOptions): Promise<number> => {
  const { value, from } = await addressOf(options)
  const url = withoutSecrets(value)
  const file = (await configFile())?.name ?? null
  const settings = words.length === 0 ? await changed() : await ofVerb(words)
  if (options.json) {
    const byName = settings.map(({ name, ...setting }) => [name, setting] as const)
    outJson({ url: { value: url, from }, file, settings: Object.fromEntries(byName) })
  } else {
    out(`url: ${printable(url)} ${paint('dim', `(from ${from})`)}`)
    out(`file: ${file ?? 'none'}`)
    for (const setting of settings)
      out(`${setting.name}: ${printable(text(setting.value))} ${paint('dim', `(from ${setting.from})`)}`)
  }
  return EXIT.ok
}

/** The settings of all verbs that a variable or the file has. */
const changed = async (): Promise<readonly OptionSetting[]> => {
  const program = makeProgram(() => {})
  const found: OptionSetting[] = []
  for (const command of [program, ...leavesOf(program)]) {
    await applySettings(command)
    found.push(...(await settingsOf(command)).filter(({ from }) => from !== 'default'))
  }
  return found
}

/** All settings of one verb, defaults included; the flags that follow its name count. */
const ofVerb = async (words: readonly string[]): Promise<readonly OptionSetting[]> => {
  let command = makeProgram(() => {})
  let rest = words
  while (command.commands.length > 0 && rest.length > 0) {
    const next = command.commands.find((one) => [one.name(), ...one.aliases()].includes(rest[0]!))
    if (next === undefined) throw refused(`'${rest[0]}' is not a verb`)
    command = next
    rest = rest.slice(1)
  }
  if (command.commands.length > 0)
    throw refused(`name a verb of '${command.name()}': ${command.commands.map((one) => one.name()).join(', ')}`)
  const { unknown } = command.parseOptions([...rest])
  if (unknown.length > 0) throw refused(`'${unknown[0]}' is not an option of ${command.name()}`)
  await applySettings(command)
  return settingsOf(command)
}

const leavesOf = (command: Command): readonly Command[] =>
  command.commands.flatMap((one) => (one.commands.length > 0 ? leavesOf(one) : [one]))

const text = (value: unknown): string => {
  if (value === null) return 'not set'
  return Array.isArray(value) ? value.join(', ') : String(value)
}

/** Hides passwords. */
const withoutSecrets = (address: string): string =>
  address
    .replace(/(:\/\/[^/?#@:]*):[^/?#@]*@/, '$1:***@')
    .replace(/([?&](?:password|secret|token)[^=&]*=)[^&]*/gi, '$1***')

const refused = (message: string): HoldfastError =>
  new HoldfastError('INVALID_OPTION', `config show: ${message}`, { field: 'verb' })
