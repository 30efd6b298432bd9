/** The peers are a separate package, installed on the first run of the benchmark: users and tests never install them. */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { delimiter, dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

const FOLDER = new URL('./peers/', import.meta.url)

interface Package {
  readonly version: string
  readonly dependencies: Readonly<Record<string, string>>
}

const read = (file: string): Package => JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8')) as Package

/** Reinstalled after the versions change. */
const areThere = (): boolean =>
  Object.entries(read('package.json').dependencies).every(([name, version]) => {
    const file = `node_modules/${name}/package.json`
    return existsSync(new URL(file, FOLDER)) && read(file).version === version
  })

/** A sentence with the versions of those among `names` that are peers; none if there are none. */
export const peerVersions = (names: readonly string[]): string[] => {
  const versions = Object.entries(read('package.json').dependencies)
    .filter(([name]) => names.includes(name))
    .map(([name, version]) => `${name} ${version}`)
  return versions.length === 0 ? [] : [`Compared with ${versions.join(', ')}.`]
}

export const installPeers = (): void => {
  if (areThere()) return
  console.error('installing the peers into bench/peers (once; --no-peers does without them) …')
  // This Node first on the PATH: a peer's binary must match the Node that runs it.
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
