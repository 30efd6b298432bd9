/**
 * Builds the documentation site and fails for what a reader would stumble over: a link or a picture that leads nowhere, a page that needs another host, a
 * search that does not know a word of the guides, a question that is not answered within two clicks from the first page. --built takes the site that is there.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path/posix'
import { QUESTIONS } from './questions.ts'

const root = new URL('..', import.meta.url).pathname
const site = join(root, 'site/dist')

if (!process.argv.includes('--built')) {
  const { status, stdout, stderr } = spawnSync('vitepress', ['build', 'site'], { cwd: root, encoding: 'utf8' })
  if (status !== 0) throw new Error(`the site is not built: ${stdout}${stderr}`)
}

const pages = globSync('**/*.html', { cwd: site }).sort()
const texts = new Map(pages.map((page) => [page, readFileSync(join(site, page), 'utf8')]))
const idsOf = (text: string): Set<string> => new Set([...text.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id!))
const ids = new Map([...texts].map(([page, text]) => [page, idsOf(text)]))

const unescaped = (text: string): string =>
  text.replaceAll('&amp;', '&').replaceAll('&quot;', '"').replaceAll('&#39;', "'")

/** The file that an address of a page stands for, and the place in it. */
const targetOf = (page: string, address: string): { readonly file: string; readonly place: string } => {
  const [path, place = ''] = decodeURI(unescaped(address)).split('#', 2) as [string, string?]
  if (path === '') return { file: page, place }
  const file = path.startsWith('/') ? path.slice(1) : normalize(join(dirname(page), path))
  return { file: file === '' || file.endsWith('/') ? `${file}index.html` : file, place }
}

const problems: string[] = []
/** What is between the menus: clicks count there, because the menu beside it names every page. */
const contentOf = (text: string): string => /<main\b[\s\S]*<\/main>/.exec(text)?.[0] ?? ''

for (const [page, text] of texts) {
  for (const [, tag, address] of text.matchAll(/<(\w+)\b[^>]*?\s(?:href|src)="([^"]*)"/g)) {
    if (/^[a-z]+:/.test(address!)) {
      if (tag !== 'a') problems.push(`${page}: ${tag} of another host: ${address}`)
      continue
    }
    const { file, place } = targetOf(page, address!)
    if (!existsSync(join(site, file))) problems.push(`${page}: ${address}: no such file`)
    else if (place !== '' && ids.has(file) && !ids.get(file)!.has(place))
      problems.push(`${page}: ${address}: no such place`)
  }
}

const [index] = globSync('assets/**/@localSearchIndex*.js', { cwd: site })
const searched = index === undefined ? '' : readFileSync(join(site, index), 'utf8')
for (const word of ['perGroup', 'RescheduleError', 'terminationGracePeriodSeconds'])
  if (!searched.toLowerCase().includes(word.toLowerCase())) problems.push(`the search does not know ${word}`)

const linksIn = (page: string): string[] =>
  [...contentOf(texts.get(page) ?? '').matchAll(/<a\b[^>]*?\shref="([^"]*)"/g)]
    .filter(([, address]) => !/^[a-z]+:/.test(address!))
    .map(([, address]) => targetOf(page, address!).file)

/** The shortest path of clicks; null if there is none of at most two. */
const pathTo = (goal: string): string[] | null => {
  if (linksIn('index.html').includes(goal)) return [goal]
  const between = linksIn('index.html').find((page) => linksIn(page).includes(goal))
  return between === undefined ? null : [between, goal]
}

for (const { question, page, answer } of QUESTIONS) {
  const goal = page.replace(/^docs\/(.*)\.md$/, '$1.html')
  const path = pathTo(goal)
  const content = contentOf(texts.get(goal) ?? '').replaceAll(/<[^>]+>/g, '')
  if (path === null) problems.push(`${question} is not answered within two clicks: ${goal}`)
  else if (!answer.test(content)) problems.push(`${goal} does not answer: ${question}`)
  else console.log(`      ${question} ${['/', ...path].join(' → ')}`)
}

for (const problem of problems) console.error(problem)
console.log(`${problems.length === 0 ? 'ok   ' : 'FAIL '} ${pages.length} pages`)
process.exitCode = problems.length === 0 && pages.length > 0 ? 0 : 1
