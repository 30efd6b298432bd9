/** How a test file comes to a server: it asks test/servers/global-setup.ts, which starts it for the first who does. */
import { inject } from 'vitest'

export type ServerKind = 'postgres' | 's3' | 'nats'

/** A server that is there, or the reason why it is not. */
export type TestServer =
  | { readonly name: string; readonly url: string }
  | { readonly name: string; readonly missing: string }

declare module 'vitest' {
  interface ProvidedContext {
    /** Where to ask. */
    readonly servers: string
  }
}

/**
 * The first is the one on which everything runs; the others also run what every store must do. null: this project has no
 * servers. Throws when HOLDFAST_REQUIRE names a server that could not be started: else its tests are skipped.
 */
export const serversOf = async (kind: ServerKind): Promise<readonly TestServer[] | null> => {
  const address = inject('servers')
  if (address === undefined) return null
  const servers = (await (await fetch(`${address}/${kind}`)).json()) as readonly TestServer[]
  const [first] = servers
  if ('missing' in first! && (process.env['HOLDFAST_REQUIRE'] ?? '').split(',').includes(kind))
    throw new Error(`HOLDFAST_REQUIRE names ${kind}, but ${first.name} could not be started: ${first.missing}`)
  return servers
}
