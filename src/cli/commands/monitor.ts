/** `holdfast monitor`: fires schedules, reclaims leases, and applies expiry and retention without running tasks. */
import { EXIT } from '../output/exit-codes.ts'
import { out } from '../output/render.ts'
import { type GlobalOptions, withClient } from '../program/session.ts'
import { stopSignal } from '../program/stop-signal.ts'
import { limitYoungGeneration } from './shared/young-generation.ts'

export const run = (_: readonly string[], options: GlobalOptions): Promise<number> => {
  limitYoungGeneration()
  return withClient(options, { create: false }, async (client) => {
    const stopped = stopSignal()
    client.monitor().start()
    if (options.json) out(JSON.stringify({ event: 'started', address: client.address }))
    else out(`monitoring ${client.address}`)
    await stopped
    return EXIT.ok
  })
}
