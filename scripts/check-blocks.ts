/**
 * Compiles every block of TypeScript in README.md and docs against the built package. A page may take names for granted (`search`, `sendReport`) and
 * packages that are not here: those are `any`. `holdfast`, `client` and `worker` are what their names say, and what the package exports need not be imported. A block
 * that names a file (```ts tasks.ts) can be imported by the others of its page. `ts fragment` is only parsed; `ts declaration` is printed from the types.
 */
import { spawnSync } from 'node:child_process'
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Block, blocksOf } from './markdown.ts'

const root = new URL('..', import.meta.url).pathname

/** A name that is not declared, and what follows from that; the same name for two alternatives. */
const TAKEN_FOR_GRANTED = new Set('TS2304 TS2552 TS2503 TS2582 TS2593 TS18004 TS18046 TS7006 TS7031 TS2451'.split(' '))
const NO_MODULE = 'TS2307'
/** What a block may use without saying where it comes from. */
const exported = (text: string): string[] =>
  [...text.matchAll(/export (type )?\{([^}]*)\}/g)].flatMap(([, type, names]) =>
    type ? [] : names!.split(',').flatMap((name) => (/^\s*(type )|^\s*$/.test(name) ? [] : [name.trim()])),
  )

const values = exported(readFileSync(join(root, 'src/index.ts'), 'utf8'))

interface Placed extends Block {
  readonly page: string
  readonly file: string
  /** Lines before the block in its file. */
  readonly added: number
}

const ASSUMED = `import type { Client, Worker } from 'holdfast'
declare global {
  const holdfast: Client
  const client: Client
  const worker: Worker
}
`

const place = (folder: string, page: string): Placed[] =>
  blocksOf(readFileSync(join(root, page), 'utf8'))
    .filter(({ info }) => /^(ts|typescript)\b/.test(info) && info !== 'ts declaration')
    .map((block) => {
      const named = block.info.split(' ').find((part) => part.endsWith('.ts'))
      const file = join(folder, page.replace(/\.md$/, ''), named ?? `line-${block.line}.ts`)
      const missing = values.filter((name) => uses(block.code, name))
      const added = missing.length === 0 ? '' : `import { ${missing.join(', ')} } from 'holdfast'\n`
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, `${added}${block.code}\nexport {}\n`)
      return { ...block, page, file, added: added === '' ? 0 : 1 }
    })

const uses = (code: string, name: string): boolean =>
  new RegExp(`(?<![.\\w'])${name}\\b(?! ?:)`).test(code) &&
  !new RegExp(`import [^']*\\b${name}\\b|(const|class|function) ${name}\\b`).test(code)

mkdirSync(join(root, 'test-artefacts'), { recursive: true })
// Inside the repository, so that the package finds itself by its name.
const folder = mkdtempSync(join(root, 'test-artefacts/blocks-'))
try {
  const pages = ['README.md', ...globSync('docs/**/*.md', { cwd: root }).sort()]
  const blocks = pages.flatMap((page) => place(folder, page))
  writeFileSync(join(folder, 'assumed.d.ts'), ASSUMED)
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      extends: '../../tsconfig.json',
      compilerOptions: { allowJs: false, noPropertyAccessFromIndexSignature: false },
      include: ['./**/*.ts'],
    }),
  )
  const { stdout } = spawnSync(
    process.execPath,
    [join(root, 'node_modules/typescript/bin/tsc'), '-p', folder, '--pretty', 'false'],
    {
      encoding: 'utf8',
      cwd: root,
    },
  )
  const problems = stdout.split('\n').flatMap((line) => {
    const found = /^(.+?)\((\d+),\d+\): error (TS\d+): (.*)$/.exec(line)
    if (found === null) return []
    const [, file, at, code, message] = found as unknown as [string, string, string, string, string]
    if (TAKEN_FOR_GRANTED.has(code)) return []
    if (code === NO_MODULE && !/'(\.\.?\/|holdfast)/.test(message)) return []
    const isSyntax = /^TS1\d{3}$/.test(code)
    const block = blocks.find((one) => one.file === join(root, file))
    if (block === undefined) return [line]
    if (block.info === 'ts fragment' && !isSyntax) return []
    return [`${block.page}:${block.line + Number(at) - block.added}: ${message}`]
  })
  if (blocks.length === 0) problems.push('there is no block of TypeScript')
  for (const problem of problems) console.error(problem)
  console.log(`${blocks.length} blocks`)
  process.exitCode = problems.length === 0 ? 0 : 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
