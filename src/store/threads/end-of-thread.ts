/** How a thread ends itself. */
import type { MessagePort } from 'node:worker_threads'

/** Nothing keeps the thread alive any longer. On Deno the port of the parent cannot be closed: there the thread closes itself. */
export const endThread = (port: MessagePort): void => {
  if (typeof port.close === 'function') port.close()
  else (globalThis as unknown as { close(): void }).close()
}
