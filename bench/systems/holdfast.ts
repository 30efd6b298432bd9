/** The built package, as a user has it. Types come from src, so that the type check does not need a build. */
import { existsSync } from 'node:fs'

type Holdfast = typeof import('../../src/index.ts')

const ENTRY = new URL('../../dist/index.js', import.meta.url)

export const loadHoldfast = async (): Promise<Holdfast> => {
  if (!existsSync(ENTRY))
    throw new Error("the benchmark measures the built package, and dist/index.js is missing: run 'npm run build' first")
  return (await import(ENTRY.href)) as Holdfast
}
