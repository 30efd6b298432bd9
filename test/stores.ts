/** The stores on which everything is run that every store must do: another store is one more line here. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { openMemory } from '../src/store/memory/store.ts'
import { openSqlite } from '../src/store/sqlite/store.ts'
import type { Store } from '../src/store/store.ts'
import { openKvInMemory } from './kv/open.ts'
import { serversOf } from './servers/ask.ts'
import { emptySchemas } from './servers/schemas.ts'

export type OpenStore = () => Promise<Store>

export interface TestedStore {
  readonly name: string
  /** An empty store; a text instead: why there is none. */
  readonly open: OpenStore | string
}

const embedded = (): TestedStore[] => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-stores-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  // Each case has a thread of its own: without this each of them would strip the types of the same files again.
  process.env['NODE_COMPILE_CACHE'] ??= join(folder, 'compiled')
  let files = 0
  return [
    { name: 'memory', open: async () => openMemory() },
    { name: 'kv', open: async () => openKvInMemory() },
    { name: 'sqlite', open: () => openSqlite(join(folder, `${++files}.db`)) },
  ]
}

/** The project `servers` has these, all others the embedded ones. */
const onPostgres = (await serversOf('postgres'))?.map(
  (server): TestedStore => ({
    name: server.name,
    open: 'missing' in server ? server.missing : emptySchemas(server.url),
  }),
)

export const stores: readonly TestedStore[] = onPostgres ?? embedded()
