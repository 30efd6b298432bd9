/** The process of the soak that submits and that visits the server. Its argument is a Use. */
import { loadHoldfast } from '../systems/holdfast.ts'
import { startLoad } from './load.ts'
import { reportMinutes } from './minutes.ts'
import { startVisitors } from './visitors.ts'

export interface Use {
  readonly address: string
  readonly rate: number
  /** Of `holdfast serve`. */
  readonly url: string
}

const { address, rate, url } = JSON.parse(process.argv[2]!) as Use
const { connect } = await loadHoldfast()
const client = await connect(address)
const load = startLoad(client, rate)
const visitors = await startVisitors(url)
reportMinutes(client, load, visitors)

process.once('SIGTERM', () => {
  const stop = async (): Promise<void> => {
    await Promise.all([load.stop(), visitors.stop()])
    await client.close()
    process.exit()
  }
  void stop()
})
