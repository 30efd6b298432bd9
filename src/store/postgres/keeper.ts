/** The settings with which the keeper's thread opens a connection like ours. */
import type { ClientConfig } from 'pg'
import type { ConnectionPolicy } from './connection.ts'

export interface KeeperPlace {
  readonly config: ClientConfig
  readonly schema: string
  readonly policy: ConnectionPolicy
  /** The channel for password requests; null if the config has the password. */
  readonly passwords: string | null
}
