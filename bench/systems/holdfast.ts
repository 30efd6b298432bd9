/** The built package, as a user has it. Types come from src, so that the type check does not need a build. */
import { existsSync } from 'node:fs'

type Holdfast = typeof import('../../src/index.ts')
type Claim = typeof import('../../src/store/postgres/claim.ts')
type Connection = typeof import('../../src/store/sqlite/connection.ts')

const DIST = new URL('../../dist/', import.meta.url)

const load = async <T>(file: string): Promise<T> => {
  const url = new URL(file, DIST)
  if (!existsSync(url))
    throw new Error(`the benchmark measures the built package, and dist/${file} is missing: run 'npm run build' first`)
  return (await import(url.href)) as T
}

export const loadHoldfast = (): Promise<Holdfast> => load<Holdfast>('index.js')

/** For the raw loop: a file with Holdfast's own tables and pragmas. */
export const loadConnection = (): Promise<Connection> => load<Connection>('store/sqlite/connection.js')

/** For the plans: the claim as PostgreSQL is asked for it. */
export const loadClaim = (): Promise<Claim> => load<Claim>('store/postgres/claim.js')
