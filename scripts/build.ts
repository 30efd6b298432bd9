/** Builds dist: declarations, JavaScript and the dashboard. It is replaced in one step, so that processes that run the old one are not disturbed. */
import { execFileSync } from 'node:child_process'
import { globSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { constants, gzipSync } from 'node:zlib'
import { bundle } from './bundle.ts'
import { removeInternalTypes } from './internal-types.ts'
import { allowMissingTypes } from './optional-types.ts'

const path = (name: string): string => new URL(`../${name}`, import.meta.url).pathname
const remove = (name: string): void => rmSync(path(name), { recursive: true, force: true })
const run = (...args: readonly string[]): void => {
  execFileSync(process.execPath, args, { stdio: 'inherit' })
}

remove('dist.new')
run(path('node_modules/typescript/bin/tsc'), '-p', 'tsconfig.build.json', '--outDir', 'dist.new')
await removeInternalTypes(path('dist.new'))
allowMissingTypes(path('dist.new'))
await bundle(path('dist.new'))
run(
  path('node_modules/vite/bin/vite.js'),
  ...['build', '--config', 'dashboard/vite.config.ts', '--logLevel', 'warn', '--outDir', path('dist.new/dashboard')],
)
// As they are sent to nearly every browser: a tenth of the package otherwise.
for (const file of globSync(path('dist.new/dashboard/assets/*'))) {
  writeFileSync(`${file}.gz`, gzipSync(readFileSync(file), { level: constants.Z_BEST_COMPRESSION }))
  rmSync(file)
}
remove('dist')
renameSync(path('dist.new'), path('dist'))
