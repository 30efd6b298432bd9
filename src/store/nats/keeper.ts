/** What the keeper's thread needs to open the same store. */
import type { NatsConnectionOptions } from './connection/connection.ts'

export interface KeeperPlace {
  readonly url: string
  readonly options: NatsConnectionOptions
}
