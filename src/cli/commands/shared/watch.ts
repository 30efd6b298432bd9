/**
 * `holdfast worker MODULE --watch`: the worker runs in a child process and reports which files it has loaded. When one
 * of them changes, the worker is stopped gracefully, so that its leases are released, and started again. However this process
 * ends, the channel to the worker closes and the worker stops.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { type FSWatcher, watch as watchFolder } from 'node:fs'
import { registerHooks } from 'node:module'
import { basename, dirname, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Worker } from '../../../index.ts'
import { EXIT } from '../../output/exit-codes.ts'
import { err, paint } from '../../output/render.ts'

/** Set in the worker's process: it is watched. */
const WATCHED = 'HOLDFAST_WATCHED'
/** Editors write in several steps. */
const SETTLES = 100
/** How long handlers may finish before their signal aborts. Short, because the developer waits for the new code. */
export const STOP_TIMEOUT = '2s'
/** After this the worker is killed. */
const PATIENCE = 5_000

// ── in the process with the worker ───────────────────────────────────────────────────────────────────────────────────

export const isWatched = (): boolean => process.env[WATCHED] !== undefined && process.send !== undefined

/** Reports every file loaded from now on, except those of packages, which do not change during development. */
export const tellLoaded = (): void => {
  registerHooks({
    load(url, context, next) {
      if (url.startsWith('file:') && !url.includes('/node_modules/')) process.send?.(fileURLToPath(url))
      return next(url, context)
    },
  })
}

export const stopWhenAlone = (worker: Worker): void => {
  if (process.connected) process.once('disconnect', () => void worker.stop())
  else void worker.stop()
}

// ── in the process that watches ──────────────────────────────────────────────────────────────────────────────────────

export const watch = async (module: string): Promise<number> => {
  const files = new Files(resolve(module))
  const ending = new AbortController()
  let child: ChildProcess | null = null
  const end = (): void => {
    // The terminal has already signalled the worker; a second signal stops it at once.
    if (ending.signal.aborted) child?.kill('SIGKILL')
    else if (child?.connected) child.disconnect()
    ending.abort()
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, end)
  while (!ending.signal.aborted) {
    child = start(files)
    const exit = exitOf(child)
    const changed = await Promise.race([files.changed(ending.signal), exit.then(() => null)])
    if (changed === null && !ending.signal.aborted) {
      err(paint('dim', 'the worker has exited; waiting for a change', process.stderr))
      await files.changed(ending.signal).then(report)
    } else if (changed !== null) report(changed)
    if (child.connected) child.disconnect()
    await endOf(child, exit)
  }
  files.close()
  return EXIT.ok
}

const report = (path: string | null): void => {
  if (path !== null) err(paint('dim', `${relative('.', path)} has changed; restarting`, process.stderr))
}

const start = (files: Files): ChildProcess => {
  const child = spawn(process.execPath, [...process.execArgv, ...process.argv.slice(1)], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, [WATCHED]: '1' },
  })
  child.on('message', (path) => files.add(String(path)))
  return child
}

const exitOf = (child: ChildProcess): Promise<void> => new Promise((done) => child.once('exit', () => done()))

const endOf = async (child: ChildProcess, exit: Promise<void>): Promise<void> => {
  const late = setTimeout(() => child.kill('SIGKILL'), PATIENCE)
  await exit
  clearTimeout(late)
}

/** The loaded files. Their folders are watched, because editors replace files instead of writing into them. */
class Files {
  readonly #paths = new Set<string>()
  readonly #folders = new Map<string, FSWatcher>()
  #found: (path: string) => void = () => {}

  constructor(module: string) {
    this.add(module)
  }

  add(path: string): void {
    this.#paths.add(path)
    const folder = dirname(path)
    // Holdfast's own files are not watched.
    if (this.#folders.has(folder) || `${folder}${sep}`.startsWith(OWN)) return
    try {
      const watcher = watchFolder(folder, (_, name) => name !== null && this.#look(resolve(folder, basename(name))))
      watcher.on('error', () => this.#folders.delete(folder))
      this.#folders.set(folder, watcher)
    } catch {
      // The folder is gone, or the system has no more watches: its files are not watched.
    }
  }

  #look(path: string): void {
    if (this.#paths.has(path)) this.#found(path)
  }

  /** The next file that changes, after a short quiet period; null if `signal` aborts first. */
  changed(signal: AbortSignal): Promise<string | null> {
    return new Promise((done) => {
      if (signal.aborted) return done(null)
      signal.addEventListener('abort', () => done(null), { once: true })
      let rest: NodeJS.Timeout | undefined
      this.#found = (path) => {
        clearTimeout(rest)
        rest = setTimeout(() => done(path), SETTLES)
      }
    })
  }

  close(): void {
    for (const watcher of this.#folders.values()) watcher.close()
  }
}

/** The folder of this package's code: changes there are not the user's. */
const OWN = fileURLToPath(new URL('../../../', import.meta.url))
