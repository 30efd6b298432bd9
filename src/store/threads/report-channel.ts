/** Reports of a keeper on another thread: they come as messages, and can be fetched at once where the event loop has not come to them. */
import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import type { KeeperOptions, KeeperReport } from '../store.ts'

interface Reported {
  readonly results: readonly KeeperReport[]
  readonly renewedAt: number
}

export interface Reports {
  /** For the keeper's thread: transfer it. */
  readonly port: MessagePort
  reportNow(): void
  close(): void
}

export const receiveReports = (report: KeeperOptions['report']): Reports => {
  const { port1: own, port2: port } = new MessageChannel()
  own.on('message', ({ results, renewedAt }: Reported) => report(results, renewedAt))
  // A worker that waits for reports alone does not keep the process alive.
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

/** The thread's end. */
export const reportTo =
  (port: MessagePort): KeeperOptions['report'] =>
  (results, renewedAt) =>
    port.postMessage({ results, renewedAt } satisfies Reported)
