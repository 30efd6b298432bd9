/** What stands where in the site. A page in a folder of docs belongs to the section of the folder; a page beside them that is not named here is a guide. */
import { globSync, readFileSync } from 'node:fs'
import { titleOf } from '../scripts/markdown.ts'

const docs = new URL('../docs/', import.meta.url).pathname

interface Section {
  readonly text: string
  /** Pages in their order. Others of the section follow, by title. */
  readonly first: readonly string[]
  readonly folders: readonly string[]
}

const SECTIONS: readonly Section[] = [
  { text: 'Start', first: ['start/sqlite.md', 'start/postgres.md'], folders: ['start'] },
  {
    text: 'Guides',
    first: ['handlers.md', 'guides/retries.md', 'flow-control.md', 'schedules.md', 'dead-letters.md', 'steps.md'],
    folders: ['.', 'guides'],
  },
  { text: 'Stores', first: ['stores/sqlite.md', 'stores/postgres.md'], folders: ['stores'] },
  {
    text: 'Reference',
    first: [
      'reference/api.md',
      'reference/configuration.md',
      'cli.md',
      'http.md',
      'errors.md',
      'metrics.md',
      'guarantees.md',
      'lifecycle.md',
      'glossary.md',
    ],
    folders: ['reference'],
  },
  {
    text: 'Background',
    first: ['internals.md', 'comparison.md', 'benchmarks.md', 'performance.md'],
    folders: ['decisions'],
  },
]

interface Entry {
  readonly text: string
  readonly link: string
}

interface Group {
  readonly text: string
  readonly collapsed: boolean
  readonly items: readonly Entry[]
}

export const sidebar = (): Group[] => {
  const pages = globSync('**/*.md', { cwd: docs }).filter((page) => page !== 'README.md')
  const named = new Set(SECTIONS.flatMap(({ first }) => first))
  return SECTIONS.map(({ text, first, folders }) => {
    const others = pages
      .filter((page) => !named.has(page) && folders.includes(page.includes('/') ? page.split('/')[0]! : '.'))
      .map(entryOf)
      .sort((a, b) => a.text.localeCompare(b.text, 'en', { numeric: true }))
    return {
      text,
      collapsed: text === 'Background',
      items: [...first.filter((page) => pages.includes(page)).map(entryOf), ...others],
    }
  })
}

const entryOf = (page: string): Entry => ({
  text: titleOf(readFileSync(docs + page, 'utf8')),
  link: `/${page.replace(/(README)?\.md$/, '')}`,
})
