/** Compiles src to dist. */
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'

rmSync(new URL('../dist', import.meta.url), { recursive: true, force: true })
const tsc = new URL('../node_modules/typescript/bin/tsc', import.meta.url).pathname
const { status } = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.build.json'], { stdio: 'inherit' })
process.exitCode = status ?? 1
