/** Submits one task after the other, and writes a line when each is acknowledged: for strace to see. */
import { openSync, writeSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { open, planOf, say } from './child.ts'

export interface AcknowledgerPlan {
  readonly file: string
  readonly acks: string
  readonly submits: number
  /** `store`: Holdfast's own. Else a bare loop with this setting, to show what the audit makes of it. */
  readonly by: 'store' | 'full' | 'normal'
}

const { file, acks, submits, by } = planOf<AcknowledgerPlan>()

const bare = (synchronous: string): (() => void) => {
  const db = new DatabaseSync(file)
  db.exec(`pragma journal_mode = wal; pragma synchronous = ${synchronous}; create table task (input text)`)
  const insert = db.prepare('insert into task values (?)')
  return () => void insert.run('a task')
}

const client = by === 'store' ? await open(file) : null
const submit = client === null ? bare(by) : () => client.submit('work', 'a task')
const log = openSync(acks, 'w')
for (let i = 1; i <= submits; i++) {
  await submit()
  writeSync(log, `ack ${i}\n`)
}
await client?.close()
say('done')
