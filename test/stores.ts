/** The stores on which everything is run that every store must do: another store is one more line here. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openMemory } from '../src/store/memory/store.ts'
import { openSqlite } from '../src/store/sqlite/store.ts'
import type { Store } from '../src/store/store.ts'
import { openKvInMemory } from './kv/open.ts'
import { emptyPrefixes } from './s3/setup.ts'
import { type ServerKind, serversOf } from './servers/ask.ts'
import { emptyBuckets } from './servers/buckets.ts'
import { emptySchemas } from './servers/schemas.ts'

export type OpenStore = () => Promise<Store>

export interface TestedStore {
  readonly name: string
  readonly kind: 'embedded' | ServerKind
  /** An empty store; a text instead: why there is none. */
  readonly open: OpenStore | string
}

/** In a folder that is gone with the store: a hook would be that of the first file alone, because files share modules. */
const onDisk = async (): Promise<Store> => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-stores-'))
  const store = await openSqlite(join(folder, 'tasks.db'))
  const close = store.close.bind(store)
  store.close = async () => {
    await close()
    rmSync(folder, { recursive: true, force: true })
  }
  return store
}

const EMBEDDED: readonly TestedStore[] = [
  { name: 'memory', kind: 'embedded', open: async () => openMemory() },
  { name: 'kv', kind: 'embedded', open: async () => openKvInMemory() },
  { name: 'sqlite', kind: 'embedded', open: onDisk },
]

const onServer = async (kind: ServerKind, openAt: (url: string) => OpenStore): Promise<TestedStore[] | null> =>
  (await serversOf(kind))?.map((server) => ({
    name: server.name,
    kind,
    open: 'missing' in server ? server.missing : openAt(server.url),
  })) ?? null

/** The project `servers` has these, all others the embedded ones. */
const onServers = await Promise.all([
  onServer('postgres', emptySchemas),
  onServer('s3', emptyPrefixes),
  onServer('nats', emptyBuckets),
])

export const stores: readonly TestedStore[] = onServers[0] === null ? EMBEDDED : onServers.flatMap((some) => some ?? [])
