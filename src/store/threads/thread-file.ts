/** Finds the file of a thread next to the file that starts it, and starts it. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Worker, type WorkerOptions } from 'node:worker_threads'
import { threadOptions } from '../../core/host/launch-options.ts'

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

/**
 * Size of a thread's young generation in MB, so that its heap stays small: with V8's default it grows by 10 to 15 MB in a drain, without a gain.
 * A collection promotes all of it at once. With the default that can exceed the limit of a heap before the thread is stopped, and then V8 aborts
 * the whole process: 7 of 360 threads that exhausted memory did so, and none of 720 with this size.
 */
export const YOUNG = 8

interface ThreadOptions extends Pick<WorkerOptions, 'transferList'> {
  /** Heap of the thread in MiB. Default: Node's default. */
  readonly heap?: number | undefined
}

/** `code` is a file, or a CommonJS script as text. `data` is copied. */
export const startThread = (
  code: URL | string,
  name: string,
  data: unknown,
  { heap, ...options }: ThreadOptions = {},
): Worker =>
  new Worker(code, {
    ...options,
    resourceLimits: {
      maxYoungGenerationSizeMb: YOUNG,
      ...(heap === undefined ? null : { maxOldGenerationSizeMb: heap }),
    },
    workerData: data,
    name,
    eval: typeof code === 'string',
    ...threadOptions(process.execArgv, process.env),
  })

export const KEEP_EXTERNAL =
  "a bundler has left a file of holdfast's behind: keep holdfast out of the bundle (esbuild --external:holdfast, webpack externals, Vite ssr.external, Next serverExternalPackages)"
