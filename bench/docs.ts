/** Writes measured tables into docs/benchmarks.md, between the two comments that name them. */
import { readFileSync, writeFileSync } from 'node:fs'

const PAGE = new URL('../docs/benchmarks.md', import.meta.url)

/** `what` is the text after "measured" in the comments: 'on sqlite'. */
export const writeMeasured = (what: string, tables: string): void => {
  const page = readFileSync(PAGE, 'utf8')
  const measured = new RegExp(`(<!-- measured ${what}: begin[^\\n]*-->\\n).*(<!-- measured ${what}: end -->)`, 's')
  if (!measured.test(page))
    throw new Error(`docs/benchmarks.md has lost the two comments 'measured ${what}' between which the tables go`)
  writeFileSync(
    PAGE,
    page.replace(measured, (_, begin: string, end: string) => `${begin}\n${tables}\n${end}`),
  )
}
