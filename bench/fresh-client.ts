/** A client of an empty store of its own: a file, or a database on a temporary server. */
import { type Client, connect, silentLogger } from '../src/index.ts'
import { type Ground, groundOf } from './ground.ts'
import type { Field } from './systems.ts'

export interface FreshClient extends Pick<Ground, 'processor'> {
  readonly client: Client
  /** Closes it and removes its store. */
  close(): Promise<void>
}

export const freshClient = async (field: Field): Promise<FreshClient> => {
  const { url, processor, remove } = await groundOf(field)
  const client = await connect(url, { create: true, logger: silentLogger })
  return { client, processor, close: () => client.close().then(remove) }
}
