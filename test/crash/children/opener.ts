/** Opens a store, perhaps as somebody else, tries to use it, and says how that went. */
import { connect } from '../../../src/connect.ts'
import { isHoldfastError, silentLogger } from '../../../src/index.ts'
import { openSqlite } from '../../../src/store/sqlite/store.ts'
import { planOf, say } from './child.ts'

export interface OpenerPlan {
  readonly file: string
  /** Wait for SIGUSR2, so that several processes open at once. */
  readonly barrier?: boolean
  /** Become this user first. */
  readonly uid?: number
}

const { file, barrier = false, uid } = planOf<OpenerPlan>()
if (uid !== undefined) {
  process.setgid!(uid)
  process.setuid!(uid)
}
const go = new Promise<void>((done) => process.once('SIGUSR2', () => done()))
say('ready')
if (barrier) {
  const alive = setInterval(() => {}, 60_000)
  await go
  clearInterval(alive)
}
try {
  say('opening')
  let created = false
  const store = await openSqlite(file, { onCreated: () => (created = true) })
  const client = await connect(store, { logger: silentLogger })
  say('opened', { created })
  const { id } = await client.submit('work', null)
  await client.close()
  say('done', { id })
} catch (error) {
  say('refused', { code: isHoldfastError(error) ? error.code : 'not a HoldfastError', message: String(error) })
}
