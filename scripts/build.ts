/** Compiles src to dist, and the dashboard to dist/dashboard. */
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'

rmSync(new URL('../dist', import.meta.url), { recursive: true, force: true })
const tsc = new URL('../node_modules/typescript/bin/tsc', import.meta.url).pathname
const vite = new URL('../node_modules/vite/bin/vite.js', import.meta.url).pathname
const STEPS = [
  [tsc, '-p', 'tsconfig.build.json'],
  [vite, 'build', '--config', 'dashboard/vite.config.ts', '--logLevel', 'warn'],
]
for (const step of STEPS) {
  const { status } = spawnSync(process.execPath, step, { stdio: 'inherit' })
  if (status !== 0) {
    process.exitCode = status ?? 1
    break
  }
}
