#!/usr/bin/env node
/** The launcher, in old syntax: too old a Node must read it far enough to say so, or to hand over to the checkout's own. */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import * as module from 'node:module'
import { fileURLToPath } from 'node:url'

const [major, minor, patch] = process.versions.node.split('.').map(Number)
const isNewEnough =
  major > 24 || (major === 24 && minor >= 15) || (major === 22 && (minor > 22 || (minor === 22 && patch >= 3)))
const ownNode = fileURLToPath(new URL('../node_modules/node/bin/node', import.meta.url))

if (isNewEnough) {
  // What was compiled is kept for the next start: a tenth of what a short verb takes. Not there in a Node that is too old, nor in Deno.
  if (module.enableCompileCache) module.enableCompileCache()
  import('../dist/cli/main.js').catch((error) => {
    const isNotBuilt =
      error && error.code === 'ERR_MODULE_NOT_FOUND' && String(error.message).includes('dist/cli/main.js')
    console.error(isNotBuilt ? 'holdfast: this checkout is not built yet: run `npm run build`.' : error)
    process.exitCode = 1
  })
} else if (existsSync(ownNode)) {
  const child = spawn(ownNode, [fileURLToPath(import.meta.url)].concat(process.argv.slice(2)), { stdio: 'inherit' })
  ;['SIGINT', 'SIGTERM', 'SIGHUP'].forEach((signal) => {
    process.on(signal, () => {
      child.kill(signal)
    })
  })
  child.on('exit', (code, signal) => {
    process.exitCode = code === null ? 128 + (signal === 'SIGKILL' ? 9 : 15) : code
  })
} else {
  console.error(
    'holdfast needs Node 22.22.3 or later of 22, or 24.15 or later; this is Node ' + process.versions.node + '.',
  )
  process.exitCode = 1
}
