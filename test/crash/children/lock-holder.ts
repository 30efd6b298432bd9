/** Has the file's write lock for a while, as a backup or a forgotten shell would. */
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import { planOf, say } from './child.ts'

export interface HolderPlan {
  readonly file: string
  readonly holds: number
}

const { file, holds } = planOf<HolderPlan>()
const db = new DatabaseSync(file, { timeout: 10_000 })
db.exec('begin immediate')
say('locked')
await pause(holds)
db.exec('rollback')
say('unlocked')
db.close()
