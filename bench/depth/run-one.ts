/** One run in a separate process: warms up on a small copy, then times the first claims of the large one. Prints JSON. */

import { loadHoldfast } from '../systems/holdfast.ts'
import { HANDLED } from './scenarios.ts'

export interface Claimed {
  /** Until the handler of the last of them had started. */
  readonly seconds: number
  readonly firstMs: number
}

const CONCURRENCY = 100

const claim = async (address: string, claims: number): Promise<Claimed> => {
  const { connect, silentLogger } = await loadHoldfast()
  const client = await connect(address, { logger: silentLogger })
  let started = 0
  let enough = (): void => {}
  const all = new Promise<void>((resolve) => (enough = resolve))
  let firstMs = 0
  const worker = client.worker({ concurrency: CONCURRENCY }).handle(HANDLED, async () => {
    if (started++ === 0) firstMs = performance.now() - start
    if (started === claims) enough()
  })
  const start = performance.now()
  worker.start()
  await all
  const seconds = (performance.now() - start) / 1_000
  await worker.stop()
  await client.close()
  return { seconds, firstMs }
}

const [warmUp, address, claims] = process.argv.slice(2)
await claim(warmUp!, Number(claims))
console.log(JSON.stringify(await claim(address!, Number(claims))))
