/**
 * Prints docs/reference: what each entry of the package exports, with its declaration and comments as in the built types. Fails for an exported name
 * that has no sentence of documentation, and for such a member of what users write and read every day.
 */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path/posix'

const root = new URL('..', import.meta.url).pathname
const NOTE = '<!-- Printed from the types by `npm run docs`: edit the comments in src. -->'

interface Exported {
  readonly name: string
  /** As a user imports it: `holdfast/http`. */
  readonly entry: string
  /** In dist: `runtime/client`. */
  readonly file: string
  readonly text: string
  readonly doc: string
}

interface Page {
  readonly name: string
  readonly title: string
  readonly what: string
  /** Files of the entry `holdfast`, by how their paths begin; or whole entries. */
  readonly files?: readonly string[]
  readonly entries?: readonly string[]
}

/** The first page that takes a file has it. */
const PAGES: readonly Page[] = [
  {
    name: 'client',
    title: 'The client',
    what: 'Connecting, defining and submitting tasks, reading and changing them.',
    files: ['connect', 'runtime/client', 'runtime/definition', 'runtime/submit/', 'runtime/tasks/', 'runtime/queues/']
      .concat(['core/submission', 'core/amend', 'core/coalesce', 'core/flow/', 'core/retry', 'runtime/observe/'])
      .concat(['runtime/cleanup/', 'runtime/telemetry/', 'runtime/abortable', 'runtime/monitor']),
  },
  {
    name: 'workers',
    title: 'Workers and handlers',
    what: 'Running tasks: options and hooks of a worker, the context of a handler, and what a handler may throw.',
    files: ['runtime/worker/', 'runtime/handler', 'core/failure', 'runtime/steps/', 'core/steps/'],
  },
  {
    name: 'operations',
    title: 'Schedules, dead letters, moving',
    what: 'Recurring work, dead letters, moving to another store, and questions about the state of a store.',
    files: ['runtime/schedules/', 'core/schedules/', 'runtime/dead-letters/', 'runtime/transfer/'].concat([
      'core/observe/diagnosis',
      'core/observe/why',
      'core/observe/fingerprint',
    ]),
  },
  {
    name: 'tasks',
    title: 'Tasks and values',
    what: 'The record of a task, errors, durations and instants.',
    files: [''],
  },
  {
    name: 'http',
    title: 'HTTP and metrics',
    what: 'The handler behind `holdfast serve`, mounted in your own server, and metrics.',
    entries: ['http', 'metrics', 'remote'],
  },
  {
    name: 'testing',
    title: 'The testing kit',
    what: 'A clock that stands still, draining, and the tests of a store.',
    entries: ['testing'],
  },
  {
    name: 'stores',
    title: 'Stores',
    what: 'Opening a store by its own function, and the contract for a store of your own.',
    entries: ['sqlite', 'postgres', 's3', 'nats', 'memory', 'store'],
  },
]

const cache = new Map<string, string>()
const read = (file: string): string => {
  if (!cache.has(file)) cache.set(file, readFileSync(join(root, 'dist', `${file}.d.ts`), 'utf8'))
  return cache.get(file)!
}

const DECLARED = /^(?:export )?(?:declare )?(?:abstract )?(interface|class|type|function|const) (\w+)/

/** All declarations of a name in a file, each with the comment above it. A class and its namesake, and overloads, are several. */
const declarationOf = (file: string, name: string): { text: string; doc: string } | null => {
  const lines = read(file).split('\n')
  const parts: string[] = []
  let doc = ''
  for (let n = 0; n < lines.length; n++) {
    if (DECLARED.exec(lines[n]!)?.[2] !== name) continue
    const begun = n
    while (!/^[^ ].*;$|^\}/.test(lines[n]!) && n < lines.length - 1) n++
    parts.push(
      lines
        .slice(begun, n + 1)
        .filter((line) => !/^ {4}(#private|private |constructor\((session|store|connected): )/.test(line))
        .join('\n')
        .replace(/^export /, '')
        .replace(/^declare /, ''),
    )
    if (doc === '') doc = commentAbove(lines, begun)
  }
  return parts.length === 0 ? null : { text: parts.join('\n'), doc }
}

const commentAbove = (lines: readonly string[], at: number): string => {
  let from = at - 1
  if (!lines[from]?.trimEnd().endsWith('*/')) return ''
  const to = from
  while (!lines[from]!.trimStart().startsWith('/**')) from--
  return lines
    .slice(from, to + 1)
    .join('\n')
    .replace(/^\s*\/\*\*|\*\/\s*$/g, '')
    .replace(/^\s*\* ?/gm, '')
    .trim()
}

/** Follows imports to where a name is declared. */
const find = (file: string, name: string, entry: string): Exported => {
  const here = declarationOf(file, name)
  if (here !== null) return { name, entry, file, ...here }
  const from = [...read(file).matchAll(/^(?:import|export) (?:type )?\{([^}]*)\} from '(\..*?)\.ts';/gm)].find(
    ([, names]) => new RegExp(`\\b${name}\\b`).test(names!),
  )
  if (from === undefined) throw new Error(`${name} is not declared in ${file}`)
  const there = new RegExp(`(\\w+) as ${name}\\b`).exec(from[1]!)?.[1] ?? name
  return { ...find(join(dirname(file), from[2]!), there, entry), name }
}

const exportsOf = (file: string, entry: string): Exported[] => {
  const text = read(file)
  const own = [...text.matchAll(/^export (?:declare )?(?:abstract )?(?:interface|class|type|function|const) (\w+)/gm)]
  const named = [...text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(([, names]) =>
    names!.split(',').map((one) =>
      one
        .trim()
        .replace(/^type /, '')
        .replace(/^\w+ as /, ''),
    ),
  )
  const all = [...text.matchAll(/^export (?:type )?\* from '(\..*?)\.ts';/gm)]
  const names = new Set([...own.map(([, name]) => name!), ...named.filter((name) => name !== '')])
  return [
    ...[...names].map((name) => find(file, name, entry)),
    ...all.flatMap(([, from]) => exportsOf(join(dirname(file), from!), entry)),
  ]
}

const entries = (): Map<string, Exported[]> => {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    readonly exports: Readonly<Record<string, string | { readonly types: string }>>
  }
  return new Map(
    Object.entries(exports).flatMap(([path, target]) =>
      typeof target === 'string' || !existsSync(join(root, target.types))
        ? []
        : [
            [
              path.slice(2),
              exportsOf(target.types.slice('./dist/'.length, -'.d.ts'.length), path.replace('.', 'holdfast')),
            ],
          ],
    ),
  )
}

const firstSentence = (doc: string): string =>
  /^[\s\S]*?[.!?](?=\s|$)/.exec(doc)?.[0].replace(/\s+/g, ' ') ?? doc.replace(/\s+/g, ' ')
const inCell = (text: string): string => text.replaceAll('|', '\\|').replace(/<(?=\w)/g, '&lt;')
/** Outside code, a type argument would be taken for HTML. */
const inProse = (text: string): string =>
  text.replace(/`[^`]*`|<(?=\w)|\{\{/g, (found) => (found === '<' ? '&lt;' : found === '{{' ? '{&#123;' : found))
const byName = (a: Exported, b: Exported): number => a.name.localeCompare(b.name, 'en')

const section = (one: Exported, places: ReadonlyMap<string, string>, page: string): string => {
  const code = one.text.replace(/\/\*\*[\s\S]*?\*\//g, '')
  // In a comment, `claim` is a word and not the function.
  const textFor = (name: string): string => (/^[a-z]/.test(name) ? code : one.text)
  const used = [...places.keys()].filter((name) => name !== one.name && new RegExp(`\\b${name}\\b`).test(textFor(name)))
  const links = used.map((name) => {
    const file = places.get(name)!
    return `[${name}](${file === page ? '' : `${file}.md`}#${name.toLowerCase()})`
  })
  return [
    `## ${one.name}`,
    inProse(one.doc),
    `\`import ${/^(interface|type) /.test(one.text) ? 'type ' : ''}{ ${one.name} } from '${one.entry}'\``,
    `\`\`\`ts declaration\n${one.text}\n\`\`\``,
    ...(links.length === 0 ? [] : [`See ${links.join(', ')}.`]),
  ].join('\n\n')
}

/** Of these, every member has a sentence: its default, its unit, its limits, when it is set. */
const IN_DETAIL = /(Options|Query|Hooks|Context|Timing|Policy|Changes)$/
const ALSO_IN_DETAIL: ReadonlySet<string> = new Set(
  'Client Worker Monitor TaskLease QueueHandle Task HistoryEntry Schedule QueueStats WorkerInfo RemoteClient RemoteTask'.split(
    ' ',
  ),
)
const MEMBER = /^ {4}(?:readonly |static |get )*(\w+)\??[(:<]/

const membersWithout = ({ name, text }: Exported): string[] => {
  if (!IN_DETAIL.test(name) && !ALSO_IN_DETAIL.has(name)) return []
  const lines = text.split('\n')
  // The first of several overloads speaks for all.
  const told = new Set(['constructor'])
  return lines.flatMap((line, n) => {
    const member = MEMBER.exec(line)?.[1]
    if (member === undefined || told.has(member)) return []
    told.add(member)
    return lines[n - 1]!.trimEnd().endsWith('*/') ? [] : [`${name}.${member}`]
  })
}

/** The pages of docs/reference by name, and the names that have no documentation. */
export const apiPages = (): {
  readonly pages: ReadonlyMap<string, string>
  readonly undocumented: readonly string[]
} => {
  const all = entries()
  const rest = new Set(all.get('') ?? [])
  const placed = PAGES.map((page) => {
    const own = [...rest].filter(({ file }) => page.files?.some((start) => file.startsWith(start)))
    for (const one of own) rest.delete(one)
    const others = (page.entries ?? []).flatMap((entry) => all.get(entry) ?? [])
    const seen = new Set<string>()
    const exported = [...own, ...others].sort(byName).filter(({ name }) => !seen.has(name) && seen.add(name))
    return { ...page, exported }
  })
  const places = new Map(
    placed.toReversed().flatMap(({ name, exported }) => exported.map((one) => [one.name, name] as const)),
  )
  const pages = new Map(
    placed.map(({ name, title, what, exported }) => [
      `reference/${name}`,
      [NOTE, `# ${title}`, what, ...exported.map((one) => section(one, places, name))].join('\n\n') + '\n',
    ]),
  )
  pages.set(
    'reference/api',
    [
      NOTE,
      '# API reference',
      'What the package exports, printed from its types. The [command line](../cli.md), [HTTP](../http.md), [errors](../errors.md) and [configuration](configuration.md) have pages of their own.',
      ...placed.map(({ name, title, what, exported }) =>
        [
          `## ${title}`,
          what,
          [
            '| name | what it is |',
            '| --- | --- |',
            ...exported.map(
              (one) =>
                `| [\`${one.name}\`](${name}.md#${one.name.toLowerCase()}) | ${inCell(firstSentence(one.doc))} |`,
            ),
          ].join('\n'),
        ].join('\n\n'),
      ),
    ].join('\n\n') + '\n',
  )
  const undocumented = placed.flatMap(({ exported }) =>
    exported.flatMap((one) =>
      [...(one.doc === '' ? [one.name] : []), ...membersWithout(one)].map((name) => `${name} (src/${one.file}.ts)`),
    ),
  )
  return { pages, undocumented }
}
