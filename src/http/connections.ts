/** Bounds the connections of a server, in total and of one address. */
import type { Server } from 'node:http'

const MOST = 1_000
/** From here on, connections without a request make room for those that have one. */
const CROWDED = 800

/** A newcomer over the limit of its address is refused: the others of the address, and other addresses, keep theirs. */
export const limitConnections = (server: Server, perAddress: number | null): void => {
  server.maxConnections = MOST
  const byAddress = new Map<string, number>()
  let all = 0
  server.on('connection', (socket) => {
    // A socket that is closed already has none.
    const address = socket.remoteAddress ?? ''
    const held = byAddress.get(address) ?? 0
    if (perAddress !== null && held >= perAddress) {
      socket.destroy()
      return
    }
    byAddress.set(address, held + 1)
    all++
    if (all >= CROWDED) server.closeIdleConnections()
    socket.once('close', () => {
      all--
      const left = byAddress.get(address)! - 1
      if (left > 0) byAddress.set(address, left)
      else byAddress.delete(address)
    })
  })
}
