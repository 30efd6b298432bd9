/** Reports of a keeper on another thread. They arrive as messages, and can also be read synchronously before the event loop delivers them. */
import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import type { KeeperOptions, KeeperReport } from '../store.ts'

interface Reported {
  readonly results: readonly KeeperReport[]
  readonly renewedAt: number
}

export interface Reports {
  /** Transfer it to the keeper's thread. */
  readonly port: MessagePort
  reportNow(): void
  close(): void
}

export const receiveReports = (report: KeeperOptions['report']): Reports => {
  const { port1: own, port2: port } = new MessageChannel()
  own.on('message', ({ results, renewedAt }: Reported) => report(results, renewedAt))
  // Waiting for reports must not keep the process alive.
  own.unref()
  return {
    port,
    reportNow: () => {
      for (let next = receiveMessageOnPort(own); next !== undefined; next = receiveMessageOnPort(own)) {
        const { results, renewedAt } = next.message as Reported
        report(results, renewedAt)
      }
    },
    close: () => own.close(),
  }
}

/** The thread's side. */
export const reportTo =
  (port: MessagePort): KeeperOptions['report'] =>
  (results, renewedAt) =>
    port.postMessage({ results, renewedAt } satisfies Reported)
