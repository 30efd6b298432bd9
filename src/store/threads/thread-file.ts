/** The file of a thread, beside the file that starts it, and the start of it. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Worker, type WorkerOptions } from 'node:worker_threads'
import { threadOptions } from '../../core/launch-options.ts'

/** null: there is none, because a bundler has put this code into another file and left the thread's behind. */
export const threadFile = (beside: string | undefined, name = 'thread'): URL | null => {
  try {
    const file = new URL(`./${name}.${beside!.endsWith('.ts') ? 'ts' : 'js'}`, beside)
    return existsSync(fileURLToPath(file)) ? file : null
  } catch {
    // A bundle in CommonJS does not know where it is.
    return null
  }
}

/** `code`: its file, or itself as a CommonJS script. `data` is copied. */
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
