/** Builds the dashboard as it is now, and looks for a browser, once for all files of the project. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium, type LaunchOptions } from 'playwright-core'
import { build } from 'vite'
import type { TestProject } from 'vitest/node'
import { findChromium } from './chromium.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder of the built dashboard. */
    readonly dashboard: string
    /** null: there is no browser, and that was said. */
    readonly chromium: LaunchOptions | null
  }
}

export default async (project: TestProject): Promise<() => void> => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-dashboard-'))
  const configFile = join(import.meta.dirname, '../../dashboard/vite.config.ts')
  // What is shipped is what is tested: vitest has set NODE_ENV to 'test'.
  const { NODE_ENV } = process.env
  process.env['NODE_ENV'] = 'production'
  await build({ configFile, logLevel: 'warn', build: { outDir: folder } })
  process.env['NODE_ENV'] = NODE_ENV
  project.provide('dashboard', folder)
  project.provide('chromium', await look())
  return () => rmSync(folder, { recursive: true, force: true })
}

/** One that is there may still not start: a library is missing, or the machine forbids it. */
const look = async (): Promise<LaunchOptions | null> => {
  try {
    const found = findChromium()
    await (await chromium.launch(found)).close()
    return found
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message.split('\n', 1)[0] : String(thrown)
    if ((process.env['HOLDFAST_REQUIRE'] ?? '').split(',').includes('browser'))
      throw new Error(`HOLDFAST_REQUIRE names browser, but there is none: ${why}`)
    process.stderr.write(`  SKIPPED browser: ${why}\n`)
    return null
  }
}
