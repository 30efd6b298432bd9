/** The peers are a package of their own, installed on the first run of the benchmark: users and tests never see them. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

const FOLDER = new URL('./peers/', import.meta.url)

export const installPeers = (): void => {
  if (existsSync(new URL('node_modules', FOLDER))) return
  console.error('installing the peers into bench/peers (once; --no-peers does without them) …')
  // With this very Node first: a peer's binary must fit the Node that runs it.
  const PATH = `${dirname(process.execPath)}${delimiter}${process.env['PATH'] ?? ''}`
  const { status } = spawnSync('npm', ['ci'], {
    cwd: fileURLToPath(FOLDER),
    env: { ...process.env, PATH },
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  })
  if (status !== 0)
    throw new Error("the peers could not be installed: see npm's message above, or measure without them (--no-peers)")
}
