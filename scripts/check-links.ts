/**
 * Fails for each link of README.md, CHANGELOG.md and docs that leads nowhere: a file that does not exist, an anchor that no heading has, a
 * page of docs that no other page links to. What a link in the package leads to is decided in package.ts.
 */
import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path/posix'
import { anchorsOf, linksOf } from './markdown.ts'

const root = new URL('..', import.meta.url).pathname
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

const pages = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...globSync('docs/**/*.md', { cwd: root }),
].sort()
const anchors = new Map(pages.map((page) => [page, anchorsOf(read(page))]))

/** Pages that are being written while others already link to them. */
const AWAITED: readonly string[] = []

const problemOf = (page: string, target: string): string | null => {
  const [path, anchor] = target.split('#', 2) as [string, string?]
  const file = path === '' ? page : normalize(join(dirname(page), decodeURI(path)))
  if (!existsSync(join(root, file))) return AWAITED.includes(file) ? null : 'no such file'
  if (anchor === undefined) return null
  return anchors.get(file)?.has(anchor) ? null : 'no such heading'
}

let dead = 0
const reached = new Set<string>()
for (const page of pages)
  for (const { target, line } of linksOf(read(page))) {
    if (/^[a-z]+:/.test(target)) continue
    const file = normalize(join(dirname(page), target.split('#', 1)[0]!))
    if (file !== page) reached.add(file)
    if (existsSync(join(root, file)) && statSync(join(root, file)).isDirectory())
      for (const inside of pages.filter((one) => dirname(one) === file.replace(/\/$/, ''))) reached.add(inside)
    const problem = problemOf(page, target)
    if (problem === null) continue
    dead++
    console.error(`${page}:${line}: ${target}: ${problem}`)
  }
for (const page of pages.filter((one) => one.startsWith('docs/') && !reached.has(one))) {
  dead++
  console.error(`${page}: no page links to it`)
}
process.exitCode = dead === 0 ? 0 : 1
