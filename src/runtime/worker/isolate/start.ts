/** Starts a child as a thread or as a process, behind one interface. */
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { HoldfastError } from '../../../core/errors.ts'
import { processOptions, threadOptions } from '../../../core/host/launch-options.ts'
import { KEEP_EXTERNAL, threadFile, YOUNG } from '../../../store/threads/thread-file.ts'
import { errorText } from './errors.ts'
import type { Isolation } from './options.ts'
import type { FromChild, ToChild } from './protocol.ts'

export interface Channel {
  send(message: ToChild): void
  /** Kills the child immediately, whatever it is doing. */
  kill(): void
}

export interface ChannelListener {
  heard(message: FromChild): void
  /** Called once when the child is dead. `how` continues the sentence "its process …". */
  exited(how: string): void
}

/** The program of a child. */
export const childFile = (): URL => {
  const file = threadFile(import.meta.url, 'child')
  if (file === null) throw new HoldfastError('INVALID_OPTION', `isolate: ${KEEP_EXTERNAL}`, { field: 'isolate' })
  return file
}

export const startChild = (isolation: Isolation, listener: ChannelListener): Channel =>
  isolation.kind === 'thread' ? startThread(isolation, listener) : startProcess(isolation, listener)

const startThread = ({ module, heap }: Isolation, { heard, exited }: ChannelListener): Channel => {
  const thread = new Worker(childFile(), {
    name: 'holdfast-handler',
    argv: [module],
    resourceLimits: { maxOldGenerationSizeMb: heap, maxYoungGenerationSizeMb: YOUNG },
    ...threadOptions(process.execArgv, process.env),
  })
  let isOutOfMemory = false
  thread.on('message', heard)
  thread.on('error', (error: NodeJS.ErrnoException) => {
    isOutOfMemory = error.code === 'ERR_WORKER_OUT_OF_MEMORY'
    if (!isOutOfMemory) heard({ kind: 'crashed', error: errorText(error) })
  })
  thread.on('exit', (code) => exited(isOutOfMemory ? `needed more than its heap of ${heap} MB` : `exited with ${code}`))
  thread.unref()
  return {
    send: (message) => thread.postMessage(message),
    kill: () => void thread.terminate(),
  }
}

const isWindows = process.platform === 'win32'

const startProcess = ({ module, heap }: Isolation, { heard, exited }: ChannelListener): Channel => {
  // Loaded here: it costs every program 2 ms at its start, and few isolate in processes.
  const { fork } = process.getBuiltinModule('node:child_process')
  const { execArgv, env } = processOptions(process.execArgv, process.env)
  const child = fork(fileURLToPath(childFile()), [module], {
    execArgv: [...execArgv, `--max-old-space-size=${heap}`],
    env,
    serialization: 'advanced',
    // A separate process group: Ctrl-C reaches only the worker, and a kill reaches everything that the handler has started.
    detached: !isWindows,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc', 'pipe'],
  })
  let isOver = false
  const over = (how: string): void => {
    if (isOver) return
    isOver = true
    exited(how)
  }
  child.on('message', (message) => heard(message as FromChild))
  child.on('error', (error) => {
    // Also raised for a message that could not be sent; then the exit event follows.
    if (child.pid === undefined) over(`could not be started: ${error.message}`)
  })
  child.on('exit', (code, signal) =>
    over(signal === null ? `exited with ${code}` : `ended by ${endedBy(signal, heap)}`),
  )
  child.unref()
  child.channel?.unref()
  // The child sees this end close when this process dies.
  const lifeline = child.stdio[4] as unknown as { unref(): void; on(event: 'error', ignore: () => void): void } | null
  lifeline?.on('error', () => {})
  lifeline?.unref()
  return {
    send: (message) => {
      if (child.connected) child.send(message, () => {})
    },
    kill: () => killGroup(child.pid),
  }
}

const killGroup = (pid: number | undefined): void => {
  if (pid === undefined) return
  try {
    process.kill(isWindows ? pid : -pid, 'SIGKILL')
  } catch {
    // It has already exited.
  }
}

const endedBy = (signal: NodeJS.Signals, heap: number): string =>
  signal === 'SIGABRT' || signal === 'SIGTRAP' ? `${signal}: an abort, or more than its heap of ${heap} MB` : signal
