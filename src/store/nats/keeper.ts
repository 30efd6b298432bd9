/** What the keeper's thread is told, so that it opens a connection like ours. */
import type { NatsConnectionOptions } from './connection.ts'

export interface KeeperPlace {
  readonly url: string
  readonly options: NatsConnectionOptions
}
