/** What a NATS connection reports about itself: that it was lost, and that it is back. */
import type { Host } from './host.ts'
import type { Wire } from './wire.ts'

interface Status {
  readonly type: 'disconnect' | 'reconnect'
}

export class Statuses {
  readonly #listeners = new Set<(status: Status) => void>()

  constructor(host: Host, wire: Wire) {
    wire.onCut(host, (isCut) => {
      host.deliver(() => {
        for (const listener of this.#listeners) listener({ type: isCut ? 'disconnect' : 'reconnect' })
      })
    })
  }

  async *stream(): AsyncGenerator<Status> {
    const waiting: Status[] = []
    let wake = (): void => {}
    this.#listeners.add((status) => {
      waiting.push(status)
      wake()
    })
    for (;;) {
      while (waiting.length > 0) yield waiting.shift()!
      await new Promise<void>((more) => {
        wake = more
      })
    }
  }
}
