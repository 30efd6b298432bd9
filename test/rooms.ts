/** The room table of DESIGN.md as a function from source files to violations, each with its reason. */
import { posix } from 'node:path'

export interface SourceFile {
  /** From the root of the repository, with forward slashes: src/core/task.ts. */
  readonly path: string
  readonly text: string
}

interface Room {
  readonly name: string
  has(path: string): boolean
  /** Files of this project that it may import; its own are always allowed. */
  readonly may: readonly RegExp[]
  /** npm packages and node: modules that it may import; left out: any. */
  readonly packages?: readonly string[]
  readonly why: string
}

const CORE = /^src\/core\//
/** The contract, and what stores share that follows from it alone. */
const CONTRACT = /^src\/store\/(store|matching|plain-glance|lease-keeper|lease-board|packed-leases)\.ts$/
/** Both ends of a keeper's thread, for every store that renews over a connection. */
const THREADED = /^src\/store\/threaded-keeper\.ts$/
const KV = /^src\/store\/kv\//
const RUNTIME = /^src\/runtime\//
/** What all stores that speak SQL share: rows and conditions. */
const SQL = /^src\/store\/sql\//
const storeOf = (path: string): string | undefined => /^src\/store\/([^/]+)\//.exec(path)?.[1]
const within = (pattern: RegExp) => (path: string) => pattern.test(path)

const ROOMS: readonly Room[] = [
  {
    name: 'core',
    has: within(CORE),
    may: [CORE],
    packages: ['ms', 'croner'],
    why: 'core is pure: it must not know that stores, clocks and processes exist',
  },
  {
    name: 'the contract',
    has: within(CONTRACT),
    may: [CORE, CONTRACT],
    packages: [],
    why: 'the contract is made of core types and nothing else',
  },
  {
    name: 'keepers on threads',
    has: within(THREADED),
    may: [CORE, CONTRACT],
    packages: ['node:process', 'node:worker_threads'],
    why: 'a keeper on a thread follows from the contract, and must not know whose leases it keeps',
  },
  {
    name: 'a store',
    has: (path) => storeOf(path) !== undefined,
    may: [CORE, CONTRACT, THREADED],
    why: 'a store keeps tasks and decides nothing: it must not know workers, or another store',
  },
  {
    name: 'runtime',
    has: within(RUNTIME),
    may: [CORE, CONTRACT, RUNTIME],
    why: 'the runtime must not know which store it has',
  },
  {
    name: 'testing',
    has: within(/^src\/testing\//),
    may: [CORE, CONTRACT, RUNTIME, /^src\/testing\//],
    why: 'testing is a public door for any store and any test runner',
  },
  {
    name: 'cli',
    has: within(/^src\/cli\//),
    may: [/^src\/(cli\/|index\.ts$|(http|metrics)\/index\.ts$)/],
    why: 'the command line uses the public API, so that it can do nothing that a user cannot',
  },
  {
    name: 'http',
    has: within(/^src\/http\//),
    may: [/^src\/(http\/|index\.ts$)/],
    why: 'the HTTP door uses the public API, so that it can do nothing that a user cannot',
  },
  {
    name: 'metrics',
    has: within(/^src\/metrics\//),
    may: [/^src\/(metrics\/|index\.ts$)/],
    why: 'metrics are counted from the public API, so that anybody can count as well',
  },
  {
    name: 'connect.ts',
    has: within(/^src\/connect\.ts$/),
    may: [CORE, CONTRACT, RUNTIME],
    why: 'it knows the stores by name and loads only the one that is asked for: import it dynamically',
  },
  {
    name: 'index.ts',
    has: within(/^src\/index\.ts$/),
    may: [CORE, CONTRACT, RUNTIME, /^src\/connect\.ts$/],
    why: 'the public API re-exports, and must not load any store',
  },
]

const RUNNERS = /^(vitest|node:test|jest|mocha|@jest\/|@vitest\/)/

interface Ban {
  readonly where: RegExp
  readonly except?: RegExp
  readonly words: readonly RegExp[]
  readonly why: string
}

const BANS: readonly Ban[] = [
  {
    where: CORE,
    words: [
      /\bDate\.now\b/,
      /\bnew Date\(\s*\)/,
      /\bMath\.random\b/,
      /\bset(?:Timeout|Interval|Immediate)\b/,
      /\bawait\b/,
      /\bperformance\b/,
      /['"]node:/,
    ],
    why: 'core is pure: time and randomness are handed in, and nothing in it waits',
  },
  {
    where: RUNTIME,
    except: /^src\/runtime\/clock\.ts$/,
    words: [
      /\bDate\.now\b/,
      /\bnew Date\(\s*\)/,
      /\bMath\.random\b/,
      /\bset(?:Timeout|Interval)\b/,
      /\bhrtime\b/,
      /\bperformance\.now\b/,
    ],
    why: 'only runtime/clock.ts reads clocks and dice, so that tests can hold time in their hands',
  },
]

interface Import {
  readonly from: string
  readonly dynamic: boolean
}

const STATIC = /\b(?:import|export)\b[^'"`;()]*?\bfrom\s*['"]([^'"]+)['"]|\bimport\s*['"]([^'"]+)['"]/g
const DYNAMIC = /\bimport\s*\(\s*['"`]([^'"`]+)['"`]/g

const importsOf = (code: string): Import[] => [
  ...[...code.matchAll(STATIC)].map((match) => ({ from: (match[1] ?? match[2])!, dynamic: false })),
  ...[...code.matchAll(DYNAMIC)].map((match) => ({ from: match[1]!, dynamic: true })),
]

/** So that prose may say what code may not. */
const withoutComments = (text: string): string => text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '$1')

/** Prose in quotes too; the quotes themselves stay, and with them what is imported. */
const withoutProse = (code: string): string => code.replace(/'[^'\n]* [^'\n]*'/g, "''")

const mayImport = (room: Room, path: string, { from, dynamic }: Import): boolean => {
  if (!from.startsWith('.')) {
    if (room.name === 'testing' && RUNNERS.test(from)) return false
    return room.packages === undefined || room.packages.includes(from)
  }
  const target = posix.normalize(posix.join(posix.dirname(path), from))
  if (room.name === 'connect.ts' && dynamic) return true
  const [own, other] = [storeOf(path), storeOf(target)]
  if (own !== undefined && own === other) return true
  if ((own === 's3' || own === 'nats') && KV.test(target)) return true
  if ((own === 'sqlite' || own === 'postgres') && SQL.test(target)) return true
  return room.may.some((pattern) => pattern.test(target))
}

/** One line for each violation: where, what, and why it matters. */
export const violations = (files: readonly SourceFile[]): string[] =>
  files.flatMap(({ path, text }) => {
    const room = ROOMS.find((one) => one.has(path))
    if (room === undefined) return [`${path} belongs to no room of DESIGN.md: every file has a place in the table`]
    const code = withoutComments(text)
    const imports = importsOf(code)
      .filter((one) => !mayImport(room, path, one))
      .map(({ from }) => `${path} imports '${from}': ${room.why}`)
    const words = BANS.filter(({ where, except }) => where.test(path) && !except?.test(path)).flatMap(
      ({ words: banned, why }) =>
        banned.flatMap((word) => {
          const found = word.exec(withoutProse(code))?.[0]
          return found === undefined ? [] : [`${path} uses ${found}: ${why}`]
        }),
    )
    return [...imports, ...words]
  })

export const LONGEST_FILE = 400

export const tooLong = (files: readonly SourceFile[]): string[] =>
  files
    .map(({ path, text }) => ({ path, lines: text.split('\n').length - 1 }))
    .filter(({ lines }) => lines > LONGEST_FILE)
    .map(
      ({ path, lines }) =>
        `${path} has ${lines} lines; over ${LONGEST_FILE} nobody reads a file whole: split it by what it is about`,
    )
