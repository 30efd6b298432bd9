/** Who takes part. A new system is a file in systems/ and a line here. */
import type { System } from './system.ts'
import { holdfastSqlite } from './systems/holdfast-sqlite.ts'
import { plainjob } from './systems/plainjob.ts'
import { rawSqlite } from './systems/raw-sqlite.ts'

export interface Entrant {
  readonly name: string
  /** Needs bench/peers to be installed. */
  readonly isPeer: boolean
  make(): Promise<System>
}

export const ENTRANTS: readonly Entrant[] = [
  { name: 'holdfast-sqlite', isPeer: false, make: holdfastSqlite },
  { name: 'raw-sqlite', isPeer: false, make: rawSqlite },
  { name: 'plainjob', isPeer: true, make: plainjob },
]
