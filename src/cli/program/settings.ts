/** Options that were not typed: from a variable such as HOLDFAST_WORKER_CONCURRENCY, or from the section of the verb in the config file. */
import type { Command, Option } from 'commander'
import { type ConfigFile, configFile, isObject, refused } from './config.ts'

/** An option of a verb, its value and its source. */
export interface OptionSetting {
  /** `worker.concurrency`, as the config file has it. */
  readonly name: string
  /** null: neither given nor has it a default. */
  readonly value: unknown
  /** `--concurrency`, `HOLDFAST_WORKER_CONCURRENCY`, the file's name, or `default`. */
  readonly from: string
}

/** They agree to something, remove it, or name one thing: each time they must be typed. */
const ONLY_TYPED: ReadonlySet<string> = new Set([
  'yes',
  'force',
  'all',
  'off',
  'none',
  'acceptRestore',
  'repairClock',
  'signalId',
])
/** `url` has its own rules: see config.ts. */
const NOT_HERE: ReadonlySet<string> = new Set(['url', 'version', 'help'])
/** Of each group only one may be given: a nearer source replaces the others of its group. */
const ALIKE: readonly (readonly string[])[] = [
  ['ttl', 'expiresAt'],
  ['at', 'delay'],
  ['maxRetries', 'maxAttempts'],
  ['cron', 'every'],
  ['until', 'for'],
]
const NEARNESS: Readonly<Record<string, number>> = { default: 0, config: 1, env: 2, cli: 3 }
/** Kubernetes sets HOLDFAST_SERVE_PORT=tcp://10.0.0.1:8484 if a service is called holdfast-serve. */
const OF_KUBERNETES = /^(tcp|udp|sctp):\/\//

/** Gives the options of a verb, and the global ones, the values that variables and the file have for them. */
export const applySettings = async (command: Command): Promise<void> => {
  const file = await configFile()
  const program = rootOf(command)
  if (file !== null) checkNames(file, program)
  for (const one of [program, command]) {
    const section = file === null ? {} : sectionOf(file, pathOf(one))
    for (const option of settable(one)) {
      apply(one, option, readVariable(one, option), 'env')
      apply(one, option, readEntry(file, one, option, section[option.attributeName()]), 'config')
    }
    dropFurther(one)
  }
}

/** Every option of the command, after applySettings. */
export const settingsOf = async (command: Command): Promise<readonly OptionSetting[]> => {
  const file = await configFile()
  return settable(command).map((option) => {
    const name = option.attributeName()
    const source = command.getOptionValueSource(name) ?? 'default'
    const from =
      source === 'cli' ? option.long! : source === 'env' ? variableOf(command, option) : (file?.name ?? 'default')
    return {
      name: nameOf(command, name),
      value: source === 'default' ? defaultOf(option) : command.getOptionValue(name),
      from: source === 'default' ? 'default' : from,
    }
  })
}

const rootOf = (command: Command): Command => (command.parent === null ? command : rootOf(command.parent))

/** The words of a verb: none for the program itself. */
const pathOf = (command: Command): readonly string[] =>
  command.parent === null ? [] : [...pathOf(command.parent), command.name()]

export const nameOf = (command: Command, name: string): string => [...pathOf(command).map(camelCase), name].join('.')

export const settable = (command: Command): readonly Option[] =>
  command.options.filter((option) => !ONLY_TYPED.has(option.attributeName()) && !NOT_HERE.has(option.attributeName()))

/** The help says what the default is. */
export const defaultOf = ({ description, negate, required }: Option): unknown =>
  required ? (/\(default: (.*?)\)/.exec(description)?.[1] ?? null) : negate

const apply = (command: Command, option: Option, value: unknown, source: 'env' | 'config'): void => {
  const name = option.attributeName()
  const present = NEARNESS[command.getOptionValueSource(name) ?? 'default']!
  if (value !== undefined && present < NEARNESS[source]!) command.setOptionValueWithSource(name, value, source)
}

const dropFurther = (command: Command): void => {
  for (const group of ALIKE) {
    const nearnessOf = (name: string): number => NEARNESS[command.getOptionValueSource(name) ?? 'default']!
    const nearest = Math.max(...group.map(nearnessOf))
    for (const name of group)
      if (nearnessOf(name) > 0 && nearnessOf(name) < nearest)
        command.setOptionValueWithSource(name, undefined, 'default')
  }
}

// ── variables ────────────────────────────────────────────────────────────────────────────────────────────────────────

export const variableOf = (command: Command, option: Option): string =>
  ['HOLDFAST', ...pathOf(command), option.attributeName().replaceAll(/[A-Z]/g, '_$&')]
    .join('_')
    .replaceAll('-', '_')
    .toUpperCase()

const readVariable = (command: Command, option: Option): unknown => {
  const name = variableOf(command, option)
  const text = process.env[name]
  if (text === undefined || text === '' || OF_KUBERNETES.test(text)) return undefined
  if (option.required) return isRepeatable(option) ? text.split(',').map((part) => part.trim()) : text
  if (/^(1|true|yes)$/i.test(text)) return true
  if (/^(0|false|no)$/i.test(text)) return false
  throw refused(`${name} must be true or false`)
}

// ── the file ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const sectionOf = ({ name, content }: ConfigFile, path: readonly string[]): Readonly<Record<string, unknown>> => {
  let section = content
  for (const [at, word] of path.entries()) {
    const next = section[camelCase(word)] ?? {}
    if (!isObject(next))
      throw refused(
        `${name}: ${path
          .slice(0, at + 1)
          .map(camelCase)
          .join('.')} must be an object`,
      )
    section = next
  }
  return section
}

/** A misspelt name must not silently mean the default, also for a verb that is not the one called. */
const checkNames = (file: ConfigFile, command: Command): void => {
  const verbs = new Map(command.commands.map((one) => [camelCase(one.name()), one] as const))
  const options = new Set(settable(command).map((option) => option.attributeName()))
  if (command.parent === null) options.add('url')
  for (const name of Object.keys(sectionOf(file, pathOf(command)))) {
    const verb = verbs.get(name)
    if (verb !== undefined) checkNames(file, verb)
    else if (ONLY_TYPED.has(name)) throw refused(`${file.name}: '${nameOf(command, name)}' must be typed as a flag`)
    else if (!options.has(name)) throw refused(`${file.name}: '${nameOf(command, name)}' is not a setting`)
  }
}

/** The value as if it had been typed. */
const readEntry = (file: ConfigFile | null, command: Command, option: Option, value: unknown): unknown => {
  if (value === undefined) return undefined
  const must = (what: string): Error =>
    refused(`${file!.name}: ${nameOf(command, option.attributeName())} must be ${what}`)
  if (!option.required) {
    if (typeof value === 'boolean') return value
    throw must('true or false')
  }
  if (isRepeatable(option)) {
    const parts = isObject(value) ? Object.entries(value).map(([name, part]) => `${name}=${part}`) : [value].flat()
    if (parts.every(isText)) return parts.map(String)
    throw must('a list of texts')
  }
  if (isText(value)) return String(value)
  if (isObject(value) && option.flags.includes('json')) return JSON.stringify(value)
  throw must('a text or a number')
}

const isText = (value: unknown): boolean => typeof value === 'string' || typeof value === 'number'

const isRepeatable = ({ parseArg }: Option): boolean => parseArg !== undefined

const camelCase = (word: string): string => word.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
