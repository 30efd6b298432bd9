/** Registers the handlers of a user's module on a worker. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Handler, HoldfastError, type IsolatedHandler, isHoldfastError, type Worker } from '../../../index.ts'
import { messageOf } from '../../output/errors.ts'

export type Exports = Readonly<Record<string, unknown>>
type Register = (worker: Worker) => unknown

/** The exports of the module. It is loaded before a store is opened, so that an error in it leaves nothing behind. */
export const loadModule = async (path: string): Promise<Exports> => {
  const whole = resolve(path)
  if (!existsSync(whole)) throw refused(path, 'does not exist')
  try {
    return (await import(pathToFileURL(whole).href)) as Exports
  } catch (error) {
    throw refused(path, `cannot be loaded: ${messageOf(error)}${whereToLook(path, error)}`, error)
  }
}

const whereToLook = (path: string, error: unknown): string => {
  if (!(error instanceof SyntaxError)) return ''
  if ((error as NodeJS.ErrnoException).code === 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX')
    return " (compile the module, or install tsx and set NODE_OPTIONS='--import tsx')"
  // Node keeps the file and the line of some syntax errors for its own report of an uncaught error.
  return error.stack?.startsWith(error.name) ? ` (\`node ${path}\` shows the line)` : ''
}

/** The worker that the module exports, or null. Recognised by its methods, because the module may use another copy of Holdfast. */
export const workerOf = (exported: Exports): Worker | null =>
  (Object.values(exported).find(
    (one) =>
      typeof one === 'object' &&
      one !== null &&
      (['handle', 'run', 'drain', 'stop'] as const).every((name) => typeof (one as Exports)[name] === 'function'),
  ) as Worker | undefined) ?? null

/** A function that registers handlers, an object of handlers by type, or functions exported under the names of types. */
export const registerHandlers = async (path: string, exported: Exports, worker: Worker): Promise<void> => {
  const { default: main, ...named } = exported
  if (typeof main === 'function') await register(path, main as Register, worker)
  else if (typeof main === 'object' && main !== null) handleEach(path, Object.entries(main), worker)
  else
    handleEach(
      path,
      Object.entries(named).filter(([, value]) => typeof value === 'function'),
      worker,
    )
}

const register = async (path: string, main: Register, worker: Worker): Promise<void> => {
  try {
    await main(worker)
  } catch (error) {
    throw isHoldfastError(error) ? error : refused(path, `failed: ${messageOf(error)}`, error)
  }
}

const handleEach = (
  path: string,
  handlers: readonly (readonly [type: string, handler: unknown])[],
  worker: Worker,
): void => {
  for (const [type, handler] of handlers) {
    const isIsolated = typeof handler === 'object' && handler !== null && 'isolate' in handler
    if (typeof handler !== 'function' && !isIsolated) throw refused(path, `exports '${type}', which is not a function`)
    worker.handle(type, handler as Handler | IsolatedHandler)
  }
}

const refused = (path: string, why: string, cause?: unknown): HoldfastError =>
  new HoldfastError('INVALID_OPTION', `MODULE '${path}' ${why}`, { field: 'MODULE' }, cause)
