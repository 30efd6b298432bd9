/** What a newcomer asks is answered within two clicks from the first page of the docs. */
import { readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path/posix'
import { describe, expect, test } from 'vitest'
import { linksOf } from '../scripts/markdown.ts'
import { QUESTIONS } from '../scripts/questions.ts'

const root = join(import.meta.dirname, '..')
const read = (page: string): string => readFileSync(join(root, page), 'utf8')

/** The pages that a page links to. */
const next = (page: string): string[] =>
  linksOf(read(page))
    .map(({ target }) => target.split('#', 1)[0]!)
    .filter((target) => target.endsWith('.md') && !/^[a-z]+:/.test(target))
    .map((target) => normalize(join(dirname(page), target)))

const within = (clicks: number, from: string): Set<string> => {
  let pages = new Set([from])
  for (let n = 0; n < clicks; n++) pages = new Set([...pages, ...[...pages].flatMap(next)])
  return pages
}

test.each(QUESTIONS)(
  '$question is answered within two clicks, from the docs and from the README',
  ({ page, answer }) => {
    expect(read(page)).toMatch(answer)
    for (const first of ['docs/README.md', 'README.md']) expect(within(2, first)).toContain(page)
  },
)

/** A non-guarantee that is not said is one that somebody relies on. */
const NOT_PROMISED: readonly (readonly [what: string, words: RegExp])[] = [
  ['[Q05] exactly-once effects', /exactly-once effects.*ctx\.fence/i],
  ['[Q05] exact time', /exact timing/i],
  ['[Q05] clocks that agree to the millisecond', /times to the millisecond/i],
  ['[Q05] strict order', /strict order across workers or retries, order across queues/i],
  ['[Q05] a limit that ends the code of a handler', /that a handler stops.*`isolate`/i],
  ['[Q05] results that stay', /that an output is kept forever/i],
  ['[P03] fair shares or affinity', /affinity.*fair shares and rates only where/i],
  ['[Q06] immediate visibility', /immediate visibility/i],
]

describe('what is not promised is said in docs/guarantees.md', () => {
  const [, section = ''] = read('docs/guarantees.md').split('## What is not promised\n')
  const [text] = section.replaceAll('\n', ' ').split('## ')
  test.each(NOT_PROMISED)('%s', (_, words) => {
    expect(text).toMatch(words)
  })
})
