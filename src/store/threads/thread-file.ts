/** Finds the file of a thread next to the file that starts it, and starts it. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Worker, type WorkerOptions } from 'node:worker_threads'
import { threadOptions } from '../../core/launch-options.ts'

/** null if the file does not exist, because a bundler has moved this code and left out the thread's file. */
export const threadFile = (beside: string | undefined, name = 'thread'): URL | null => {
  try {
    const file = new URL(`./${name}.${beside!.endsWith('.ts') ? 'ts' : 'js'}`, beside)
    return existsSync(fileURLToPath(file)) ? file : null
  } catch {
    // A CommonJS bundle does not know its location.
    return null
  }
}

/** `code` is a file, or a CommonJS script as text. `data` is copied. */
export const startThread = (
  code: URL | string,
  name: string,
  data: unknown,
  options: Pick<WorkerOptions, 'transferList' | 'resourceLimits'> = {},
): Worker =>
  new Worker(code, {
    ...options,
    workerData: data,
    name,
    eval: typeof code === 'string',
    ...threadOptions(process.execArgv, process.env),
  })

export const KEEP_EXTERNAL =
  "a bundler has left a file of holdfast's behind: keep holdfast out of the bundle (esbuild --external:holdfast, webpack externals, Vite ssr.external, Next serverExternalPackages)"
