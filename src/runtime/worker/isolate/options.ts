/** The options of an isolated handler, and their checks. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { HoldfastError } from '../../../core/errors.ts'
import { checkInteger } from '../../../core/submission.ts'
import { type Duration, parseDuration } from '../../../core/values/durations.ts'
import { checkOptionNames } from '../../../core/values/option-names.ts'

/** `worker.handle(resize, { module: new URL('./resize.ts', import.meta.url), isolate: 'process' })`. */
export interface IsolatedHandler {
  /** The module that exports the handler: a URL, or a path relative to the current folder. */
  readonly module: URL | string
  /** The name of the export. Default: `default`. */
  readonly export?: string
  /** A `thread` contains endless loops, heap exhaustion and process.exit. A `process` also contains native crashes. */
  readonly isolate: 'thread' | 'process'
  /** Limit of the JavaScript heap in MB. Default 512. */
  readonly heap?: number
  /** How long a handler may continue after a cancel before it is killed. Default 5 s. */
  readonly grace?: Duration
}

export interface Isolation {
  readonly kind: 'thread' | 'process'
  /** A file URL. */
  readonly module: string
  readonly export: string
  readonly heap: number
  readonly grace: number
}

const KINDS: readonly string[] = ['thread', 'process'] satisfies Isolation['kind'][]

export const isIsolated = (handler: unknown): handler is IsolatedHandler =>
  typeof handler === 'object' && handler !== null && 'module' in handler

const OPTIONS: ReadonlySet<string> = new Set<keyof IsolatedHandler>(['module', 'export', 'isolate', 'heap', 'grace'])

export const isolationOf = (given: IsolatedHandler): Isolation => {
  checkOptionNames(given, OPTIONS, 'an isolated handler')
  if (!KINDS.includes(given.isolate))
    throw invalid('isolate', `is ${String(given.isolate)}: write 'thread' or 'process'`)
  return {
    kind: given.isolate,
    module: moduleOf(given.module),
    export: given.export ?? 'default',
    heap: checkInteger(given.heap ?? 512, 'heap', 16, 1_048_576),
    grace: parseDuration(given.grace ?? '5s', 'grace'),
  }
}

/** Checks that the file exists, so that a wrong path is reported at registration and not by the first task. */
const moduleOf = (module: URL | string): string => {
  const url = module instanceof URL || module.startsWith('file:') ? new URL(module) : pathToFileURL(resolve(module))
  if (url.protocol !== 'file:') throw invalid('module', `is ${url.href}: only files can be loaded`)
  if (!existsSync(fileURLToPath(url))) throw invalid('module', `does not exist: ${fileURLToPath(url)}`)
  return url.href
}

const invalid = (field: string, why: string): HoldfastError =>
  new HoldfastError('INVALID_OPTION', `${field} of an isolated handler ${why}`, { field })
