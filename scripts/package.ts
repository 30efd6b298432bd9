/**
 * Writes the package as it is published into package/: without development settings, and with links that lead somewhere. A relative link
 * to a file that is not in the package leads to the repository, or is plain text as long as package.json names none.
 */
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { withoutDeadLinks } from './links.ts'

const root = join(import.meta.dirname, '..')
const target = join(root, 'package')
const PAGES = ['README.md', 'CHANGELOG.md', 'SECURITY.md']

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const { devDependencies: _, scripts: __, overrides: ___, allowScripts: ____, private: _____, ...published } = manifest

const url: string | undefined = published.repository?.url ?? published.repository
const repository =
  url === undefined ? null : `${url.replace(/^git\+/, '').replace(/\.git$/, '')}/blob/v${published.version}/`

rmSync(target, { recursive: true, force: true })
for (const name of ['bin', 'dist', 'LICENSE'])
  cpSync(join(root, name), join(target, name), { recursive: true, filter: (path) => !path.endsWith('.map') })
writeFileSync(join(target, 'package.json'), `${JSON.stringify(published, null, 2)}\n`)
for (const page of PAGES) {
  const isHere = (path: string): boolean => PAGES.includes(path) || existsSync(join(target, path))
  writeFileSync(join(target, page), withoutDeadLinks(readFileSync(join(root, page), 'utf8'), isHere, repository))
}
