/** What a thread or a child process that runs a file of ours takes over from the process that starts it. */

type Environment = Readonly<Record<string, string | undefined>>

export interface LaunchOptions {
  /** Left out: Node hands on its own, also those that it would refuse by name. */
  readonly execArgv?: string[]
  /** Left out: all of it. */
  readonly env?: Record<string, string | undefined>
}

/** The program was given as text. Node refuses these options for a file, and hands them on to threads. */
const TEXT = /^(-e|-p|-pe|--eval|--print|--input-type)\b/
const TEXT_IN_ENVIRONMENT = /--input-type(=|\s+)\S+/g
/** A child has no debugger, watches nothing, and is not a test. */
const OF_THE_PARENT = /^--(inspect|watch|test)/
/** Set by `node --watch`: Node then reports every import to the parent, as a message among ours. */
const REPORTS_IMPORTS = 'WATCH_REPORT_DEPENDENCIES'

export const threadOptions = (execArgv: readonly string[], env: Environment): LaunchOptions => ({
  ...(isText(execArgv, env) ? { execArgv: [] } : null),
  ...environment(env),
})

export const processOptions = (execArgv: readonly string[], env: Environment): Required<LaunchOptions> => ({
  execArgv: isText(execArgv, env) ? [] : execArgv.filter((arg) => !OF_THE_PARENT.test(arg)),
  env: environment(env).env ?? { ...env },
})

const isText = (execArgv: readonly string[], { NODE_OPTIONS = '' }: Environment): boolean =>
  execArgv.some((arg) => TEXT.test(arg)) || NODE_OPTIONS.search(TEXT_IN_ENVIRONMENT) !== -1

/** A copy where something must not be handed on. */
const environment = (env: Environment): Pick<LaunchOptions, 'env'> => {
  const { [REPORTS_IMPORTS]: reports, NODE_OPTIONS, ...others } = env
  const cleaned = NODE_OPTIONS?.replaceAll(TEXT_IN_ENVIRONMENT, '')
  if (reports === undefined && cleaned === NODE_OPTIONS) return {}
  return { env: { ...others, ...(cleaned === undefined ? null : { NODE_OPTIONS: cleaned }) } }
}
