/**
 * Removes declarations that no entry of the package refers to. What a file exports only to its siblings cannot be imported by those who install
 * the package, and it was a third of all declarations.
 */
import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type ESTree, parse, Visitor } from 'rolldown/utils'

const { exports } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  readonly exports: Readonly<Record<string, string | { readonly types: string }>>
}

/** A declaration, or a statement that exports names of another file. */
interface Statement {
  readonly names: readonly string[]
  /** The names of types and values that it refers to. */
  readonly mentions: Set<string>
  /** Names of other files that it refers to by itself. `*`: all. */
  readonly refersTo: { readonly file: string; readonly name: string }[]
  readonly text: string
  isNeeded: boolean
}

interface Import {
  readonly local: string
  /** null: another package. */
  readonly file: string | null
  readonly name: string
  /** How it is written: `type A as B`. */
  readonly text: string
}

interface Source {
  readonly statements: readonly Statement[]
  readonly imports: readonly { readonly links: readonly Import[]; readonly text: string }[]
}

export const removeInternalTypes = async (dist: string): Promise<void> => {
  const sources = new Map<string, Source>()
  for (const file of globSync(`${dist}/**/*.d.ts`)) sources.set(file, await read(file))
  for (const entry of Object.values(exports))
    if (typeof entry !== 'string') need(sources, join(dist, entry.types.replace('./dist/', '')), '*')
  for (const [file, source] of sources) {
    const text = whatIsNeeded(source)
    if (text === '') rmSync(file)
    else writeFileSync(file, text)
  }
}

const need = (sources: ReadonlyMap<string, Source>, file: string, name: string): void => {
  const { statements, imports } = sources.get(file)!
  for (const statement of statements) {
    if (statement.isNeeded || (name !== '*' && !statement.names.includes(name))) continue
    statement.isNeeded = true
    for (const other of statement.refersTo) need(sources, other.file, other.name)
    for (const mention of statement.mentions) need(sources, file, mention)
    for (const { links } of imports)
      for (const { local, file: from, name: of } of links)
        if (from !== null && statement.mentions.has(local)) need(sources, from, of)
  }
}

const whatIsNeeded = ({ statements, imports }: Source): string => {
  const needed = statements.filter(({ isNeeded }) => isNeeded)
  const kept = imports.flatMap(({ links, text }) => {
    const mentioned = links.filter(({ local }) => needed.some(({ mentions }) => mentions.has(local)))
    const names = mentioned.map((link) => link.text).join(', ')
    return mentioned.length === 0 ? [] : [text.replace(/\{.*\}/s, `{ ${names} }`)]
  })
  return [...kept, ...needed.map(({ text }) => text)].map((text) => `${text}\n`).join('')
}

const read = async (file: string): Promise<Source> => {
  const code = readFileSync(file, 'utf8')
  const { program } = await parse(file, code, { lang: 'dts' })
  const fileOf = (path: string): string => join(dirname(file), path.replace(/\.[jt]s$/, '.d.ts'))
  const statements: (Statement & { readonly end: number })[] = []
  const imports: Source['imports'][number][] = []
  let end = 0
  for (const node of program.body) {
    const text = code.slice(end, node.end).trim()
    end = node.end
    if (node.type === 'ImportDeclaration') {
      const from = node.source.value
      const links = node.specifiers.map((one) => ({
        local: one.local.name,
        file: from.startsWith('.') ? fileOf(from) : null,
        name: one.type === 'ImportSpecifier' ? nameOf(one.imported) : '*',
        text: code.slice(one.start, one.end),
      }))
      imports.push({ links, text })
      continue
    }
    const names: string[] = []
    const refersTo: { file: string; name: string }[] = []
    if (node.type === 'ExportAllDeclaration') refersTo.push({ file: fileOf(node.source.value), name: '*' })
    else if (node.type === 'ExportNamedDeclaration' && node.declaration === null) {
      for (const { local, exported } of node.specifiers) {
        names.push(nameOf(exported))
        if (node.source) refersTo.push({ file: fileOf(node.source.value), name: nameOf(local) })
      }
    } else names.push(...declaredBy(node.type === 'ExportNamedDeclaration' ? node.declaration! : node))
    statements.push({ names, refersTo, mentions: new Set(), text, isNeeded: false, end })
  }
  const mention = (name: ESTree.Node): void => {
    if (name.type === 'TSQualifiedName') mention(name.left)
    else if (name.type === 'Identifier')
      statements.find((statement) => name.start < statement.end)!.mentions.add(name.name)
  }
  new Visitor({
    TSTypeReference: ({ typeName }) => mention(typeName),
    TSTypeQuery: ({ exprName }) => mention(exprName),
    TSInterfaceHeritage: ({ expression }) => mention(expression),
    TSClassImplements: ({ expression }) => mention(expression),
    ClassDeclaration: ({ superClass }) => superClass && mention(superClass),
    ExportSpecifier: ({ local }) => mention(local),
  }).visit(program)
  return { statements, imports }
}

const nameOf = (name: ESTree.ModuleExportName): string => (name.type === 'Literal' ? name.value : name.name)

const declaredBy = (node: ESTree.Statement): readonly string[] => {
  if (node.type === 'VariableDeclaration') return node.declarations.map(({ id }) => ('name' in id ? id.name : ''))
  return 'id' in node && node.id !== null && 'name' in node.id ? [node.id.name] : []
}
