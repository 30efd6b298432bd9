/** The site is docs/ as it is: the same pages are read in the repository and in the package. */
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { defineConfig, type MarkdownRenderer } from 'vitepress'
import { slugOf } from '../../scripts/markdown.ts'
import { sidebar } from '../sidebar.ts'

const root = new URL('../..', import.meta.url).pathname
const docs = join(root, 'docs')
const { description } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { readonly description: string }

/** Files beside docs that a page links to, such as an example: they come along as text. */
const linkedFiles = new Set<string>()

const withFilesBesideDocs = (md: MarkdownRenderer): void => {
  md.core.ruler.push('files-beside-docs', ({ tokens, env }) => {
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const href = token.attrGet('href')
      if (token.type !== 'link_open' || href === null || /^([a-z]+:|#)/.test(href)) continue
      const file = join(dirname(env.path as string), href.split('#', 1)[0]!)
      const inDocs = relative(docs, file)
      if (/(^|\/)README\.md$/.test(inDocs) && !inDocs.startsWith('..'))
        token.attrSet('href', `/${inDocs.replace(/README\.md$/, '')}`)
      else if (inDocs.startsWith('..') || /\.(json|yaml)$/.test(file)) {
        linkedFiles.add(file)
        token.attrSet('href', `/files/${relative(root, file)}.txt`)
        token.attrSet('target', '_self')
      }
    }
  })
}

/** The picture of a diagram needs three megabytes of script; the table above says the same. */
const withoutDiagrams = (md: MarkdownRenderer): void => {
  const fence = md.renderer.rules.fence!
  md.renderer.rules.fence = (...args) => (args[0][args[1]]!.info === 'mermaid' ? '' : fence(...args))
}

export default defineConfig({
  title: 'Holdfast',
  description,
  lang: 'en',
  srcDir: '../docs',
  outDir: 'dist',
  cacheDir: '../node_modules/.cache/vitepress',
  rewrites: { 'README.md': 'index.md', 'decisions/README.md': 'decisions/index.md' },
  head: [['link', { rel: 'icon', href: '/icon.svg', type: 'image/svg+xml' }]],
  vite: { publicDir: '../site/public' },
  // Our own checks know more: scripts/check-links.ts, and scripts/check-site.ts for the site as it was built.
  ignoreDeadLinks: true,
  markdown: {
    anchor: { slugify: slugOf },
    config: (md) => {
      withFilesBesideDocs(md)
      withoutDiagrams(md)
    },
  },
  buildEnd: ({ outDir }) => {
    for (const file of linkedFiles) {
      const copy = join(outDir, 'files', `${relative(root, file)}.txt`)
      mkdirSync(dirname(copy), { recursive: true })
      copyFileSync(file, copy)
    }
  },
  themeConfig: {
    logo: '/icon.svg',
    search: { provider: 'local' },
    outline: [2, 3],
    sidebar: sidebar() as never,
    nav: [
      { text: 'Start', link: '/start/sqlite', activeMatch: '^/start/' },
      { text: 'Guides', link: '/handlers' },
      { text: 'Reference', link: '/reference/api', activeMatch: '^/reference/' },
    ],
  },
})
