/** A page that is followed from the packed package. dist must be built. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { follow } from '../../scripts/follow.ts'

const root = join(import.meta.dirname, '../..')

/** Follows docs/start/NAME.md, and at the end opens the dashboard at the address that it printed. */
export const followFromTarball = async (
  name: string,
  replace: readonly (readonly [string, string])[] = [],
): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-start-'))
  try {
    execFileSync('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: root, stdio: 'ignore' })
    const tarball = join(folder, readdirSync(folder).find((file) => file.endsWith('.tgz'))!)
    const empty = join(folder, 'empty')
    mkdirSync(empty)
    await portIsFree(8484)
    await follow(readFileSync(join(root, `docs/start/${name}.md`), 'utf8'), {
      folder: empty,
      replace: [['npm install holdfast', `npm install --no-audit --no-fund --prefer-offline ${tarball}`], ...replace],
      look: async (printed) => {
        const address = /^open +(\S+)$/m.exec(printed.at(-1)!)![1]!
        const login = await fetch(address, { redirect: 'manual' })
        assert.ok(login.status < 400, `${address} answers ${login.status}`)
        const page = await fetch(new URL('/', address))
        assert.match(await page.text(), /<title>Holdfast/)
      },
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The page uses the port that is the default, and another run of this test may have it. */
const portIsFree = async (port: number): Promise<void> => {
  const isTaken = (): Promise<boolean> =>
    new Promise((done) => {
      const socket = createConnection({ port, host: '127.0.0.1' })
      socket.once('connect', () => done(true)).once('error', () => done(false))
      socket.once('close', () => socket.destroy())
      socket.once('connect', () => socket.end())
    })
  while (await isTaken()) await sleep(500)
}
