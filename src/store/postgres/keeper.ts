/** What the keeper's thread is told, so that it opens a connection like ours. */
import type { ClientConfig } from 'pg'
import type { Manners } from './connection.ts'

export interface KeeperPlace {
  readonly config: ClientConfig
  readonly schema: string
  readonly manners: Manners
  /** Where to ask for a password; null: the config has it. */
  readonly passwords: string | null
}
