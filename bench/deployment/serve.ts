/** A process of the benchmark: handles the coordinator's requests over IPC, with one reply per request. */

import { readFileSync } from 'node:fs'

/** The requests that a process handles. Arguments and replies are JSON. */
// biome-ignore lint/suspicious/noExplicitAny: the arguments are those of the verbs that a process defines.
export type Verbs = Readonly<Record<string, (args: any) => unknown>>

interface Request {
  readonly id: number
  readonly verb: string
  readonly args: unknown
}

export type Message =
  | { readonly id: number; readonly answer: unknown }
  | { readonly id: number; readonly error: string }
  | { readonly note: unknown }

export const send = (message: Message): void => void process.send?.(message)

export const serve = (verbs: Verbs): void => {
  const answer = async ({ id, verb, args }: Request): Promise<void> => {
    try {
      send({ id, answer: await verbs[verb]!(args) })
    } catch (error) {
      send({ id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) })
    }
  }
  process.on('message', (request: Request) => void answer(request))
  // The coordinator has gone, so no more requests can come.
  process.on('disconnect', () => process.exit())
}

/** Microseconds of the monotonic clock. */
export const micros = (): number => Number(process.hrtime.bigint() / 1_000n)

/** Of all threads of this process. */
export const cpuSeconds = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000_000
}

/**
 * The peak memory of this process. On Linux maxRSS starts with the memory of the process that forked this one, so the kernel's
 * high-water mark is read; elsewhere maxRSS is used. Both are in kilobytes.
 */
export const peakRssMegabytes = (): number => {
  if (process.platform !== 'linux') return process.resourceUsage().maxRSS / 1_024
  return Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))![1]) / 1_024
}
