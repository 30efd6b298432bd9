/** The room table of CONTRIBUTING.md as a function from source files to violations, each with its reason. */
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
const CONTRACT =
  /^src\/store\/((index|store|matching|queue-counts|wake-listeners)|threads\/(lease-keeper|lease-board|packed-leases|claims-under-way|given-back))\.ts$/
/** Both ends of a keeper's thread, for every store that renews over a connection. */
const THREADED = /^src\/store\/threads\/(threaded-keeper|thread-file|report-channel|end-of-thread)\.ts$/
/** Finds and starts the file of a thread: also for isolated handlers. */
const THREAD_FILE = /^src\/store\/threads\/thread-file\.ts$/
/** Read by everything that says which version it is. */
const VERSION = /^src\/version\.ts$/
/** Refuses unknown options, which decides nothing about tasks: every function with options uses it. */
const OPTION_NAMES = /^src\/core\/values\/option-names\.ts$/
const MIGRATIONS = /^src\/store\/\w+\/migrations\//
const KV = /^src\/store\/kv\//
/** Stores with sub-rooms: every folder of theirs needs a rule. */
const SUBDIVIDED = /^src\/store\/(kv|nats)\//
const RUNTIME = /^src\/runtime\//
/** What all stores that speak SQL share: rows and conditions. */
const SQL = /^src\/store\/sql\//
const storeOf = (path: string): string | undefined => /^src\/store\/([^/]+)\//.exec(path)?.[1]
const within = (pattern: RegExp) => (path: string) => pattern.test(path)

interface SubRoom {
  /** Files directly in the parent's folder; left out: the folder of that name. */
  readonly files?: RegExp
  /** Sub-rooms that it may import beside its own. */
  readonly may: readonly string[]
}

const escaped = (text: string): string => text.replace(/[/.]/g, '\\$&')

/** The folders of one room and which of them may import which. */
const subRoomsOf = (
  folder: string,
  below: readonly RegExp[],
  why: string,
  rooms: Readonly<Record<string, SubRoom>>,
  packages?: readonly string[],
): readonly Room[] => {
  const patternOf = (name: string): RegExp => {
    const files = rooms[name]!.files
    if (files === undefined) return new RegExp(`^${escaped(folder)}\\/${name}\\/`)
    return new RegExp(`^${escaped(folder)}\\/${files.source.slice(1)}`)
  }
  return Object.entries(rooms).map(([name, { may }]) => ({
    name: `${folder}: ${name}`,
    has: within(patternOf(name)),
    may: [...below, patternOf(name), ...may.map(patternOf)],
    ...(packages === undefined ? {} : { packages }),
    why: `${why}, and ${name} may import only ${[name, ...may].join(', ')}`,
  }))
}

const ROOMS: readonly Room[] = [
  ...subRoomsOf(
    'src/core',
    [],
    'core is pure: it must not know that stores, clocks and processes exist',
    {
      // The record and the errors: what every rule speaks of.
      record: { files: /^(task|errors)\.ts$/, may: [] },
      values: { may: ['record'] },
      storage: { may: ['record'] },
      host: { may: ['record'] },
      // The machine and the rules that it needs.
      rules: { files: /^[^/]+\.ts$/, may: ['record', 'values', 'storage', 'steps', 'transfer'] },
      flow: { may: ['record', 'values', 'rules'] },
      steps: { may: ['record', 'values', 'rules', 'transfer'] },
      schedules: { may: ['record', 'values', 'rules'] },
      transfer: { may: ['record', 'values', 'rules', 'flow', 'schedules'] },
      observe: { may: ['record', 'values', 'rules', 'storage', 'schedules', 'steps', 'transfer'] },
    },
    ['ms', 'croner'],
  ),
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
    may: [CORE, CONTRACT, THREADED],
    packages: ['node:fs', 'node:process', 'node:url', 'node:worker_threads'],
    why: 'a keeper on a thread follows from the contract, and must not know whose leases it keeps',
  },
  {
    name: 'migrations',
    has: within(MIGRATIONS),
    // Of the same store: an earlier one, which is as frozen.
    may: [MIGRATIONS],
    packages: [],
    why: 'a migration is frozen text: what it imported could change under it',
  },
  ...subRoomsOf('src/store/kv', [CORE, CONTRACT], 'the engine must not know which store it serves', {
    access: { may: [] },
    // Keys and bodies as text.
    names: { files: /^records\/(names|hint-names|bundle-names|bodies)\.ts$/, may: [] },
    discards: { files: /^cleanup\/discards\.ts$/, may: [] },
    // What the engine and an implementation of hints share.
    'hint interface': { files: /^hints\/(hints|hint-cache|contention)\.ts$/, may: ['access', 'names'] },
    hints: { may: ['access', 'names', 'discards', 'hint interface'] },
    records: { may: ['access', 'names', 'discards', 'hint interface'] },
    ended: { may: ['access', 'names', 'hint interface', 'records'] },
    places: { may: ['access', 'names', 'records'] },
    cleanup: { may: ['access', 'names', 'discards', 'records'] },
    engine: {
      files: /^[^/]+\.ts$/,
      may: ['access', 'names', 'discards', 'hint interface', 'hints', 'records', 'ended', 'places', 'cleanup'],
    },
  }),
  ...subRoomsOf('src/store/nats', [CORE, CONTRACT, THREADED, KV], 'a store must not know another store', {
    connection: { may: [] },
    base: { files: /^(subjects|clock)\.ts$/, may: ['connection'] },
    messages: { may: ['connection', 'base'] },
    nats: { files: /^[^/]+\.ts$/, may: ['connection', 'base', 'messages'] },
  }),
  {
    name: 'a store',
    has: (path) => storeOf(path) !== undefined && !SUBDIVIDED.test(path),
    may: [CORE, CONTRACT, THREADED],
    why: 'a store keeps tasks and decides nothing: it must not know workers, or another store',
  },
  {
    name: 'version.ts',
    has: within(VERSION),
    may: [],
    packages: ['node:fs'],
    why: 'it reads package.json and nothing else',
  },
  ...subRoomsOf('src/runtime', [CORE, CONTRACT, THREAD_FILE, VERSION], 'the runtime must not know which store it has', {
    // What every part of the runtime stands on.
    base: {
      files: /^(session|abortable|clock|contact|held-leases|store-time|ids|definition|documents|patience)\.ts$/,
      may: ['handler', 'telemetry'],
    },
    telemetry: { may: ['base', 'handler'] },
    // The public types of a run, which name the client.
    handler: { files: /^handler\.ts$/, may: ['base', 'telemetry', 'client'] },
    queues: { may: ['base'] },
    tasks: { may: ['base', 'telemetry', 'queues'] },
    cleanup: { may: ['base', 'telemetry', 'queues'] },
    submit: { may: ['base', 'telemetry', 'queues', 'tasks'] },
    schedules: { may: ['base', 'telemetry', 'queues', 'tasks', 'submit'] },
    worker: { may: ['base', 'telemetry', 'handler', 'queues', 'tasks', 'cleanup', 'client'] },
    'dead-letters': { may: ['base', 'telemetry', 'queues', 'tasks', 'submit'] },
    observe: { may: ['base', 'telemetry', 'handler', 'queues', 'tasks', 'worker', 'schedules'] },
    transfer: { may: ['base', 'telemetry', 'queues', 'tasks', 'submit', 'worker', 'schedules'] },
    monitor: { files: /^monitor\.ts$/, may: ['base', 'telemetry', 'queues', 'cleanup'] },
    client: {
      files: /^(client|task-calls)\.ts$/,
      may: [
        'base',
        'telemetry',
        'queues',
        'tasks',
        'submit',
        'schedules',
        'worker',
        'dead-letters',
        'observe',
        'transfer',
        'cleanup',
        'monitor',
      ],
    },
  }),
  {
    name: 'testing',
    has: within(/^src\/testing\//),
    // crashEverywhere opens a memory store of its own.
    may: [CORE, CONTRACT, RUNTIME, /^src\/(testing\/|connect\.ts$|store\/memory\/store\.ts$)/],
    why: 'testing is public, for any store and any test runner',
  },
  ...subRoomsOf(
    'src/cli',
    [VERSION, /^src\/(index\.ts$|(http|metrics|testing)\/index\.ts$)/],
    'the command line uses the public API, so that it can do nothing that a user cannot',
    {
      output: { may: [] },
      bench: { may: [] },
      demo: { may: ['output'] },
      // The tables, which load commands by name.
      verbs: { files: /^program\/([a-z]+-)?verbs?\.ts$/, may: ['commands'] },
      program: { may: ['output'] },
      commands: { may: ['output', 'program', 'bench', 'demo'] },
      main: { files: /^main\.ts$/, may: ['program', 'output'] },
    },
  ),
  ...subRoomsOf(
    'src/http',
    [VERSION, OPTION_NAMES, /^src\/index\.ts$/],
    'the HTTP handler uses the public API, so that it can do nothing that a user cannot',
    {
      // The types of a route and of a call, which name what a call may use.
      route: { files: /^route\.ts$/, may: ['auth', 'live', 'wire', 'services'] },
      services: { files: /^(background-jobs|claims|confirmations|store-now)\.ts$/, may: ['wire', 'auth', 'route'] },
      auth: { may: ['wire', 'route'] },
      live: { may: ['wire', 'route'] },
      routes: { may: ['wire', 'auth', 'live', 'services', 'route'] },
      table: { files: /^routes\.ts$/, may: ['routes', 'route'] },
      // openapi.ts prints the table.
      wire: { may: ['route', 'table'] },
      handler: { files: /^[^/]+\.ts$/, may: ['auth', 'live', 'wire', 'services', 'route', 'table'] },
    },
  ),
  {
    name: 'metrics',
    has: within(/^src\/metrics\//),
    may: [OPTION_NAMES, /^src\/(metrics\/|index\.ts$)/],
    why: 'metrics are counted from the public API, so that any user can count the same',
  },
  {
    name: 'remote',
    has: within(/^src\/remote\//),
    may: [CORE, /^src\/(remote\/|runtime\/(definition|handler)\.ts$)/],
    packages: [],
    why: 'the remote client runs in browsers and on edge hosts: it must not need Node, a store or the runtime',
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
    may: [CORE, CONTRACT, RUNTIME, VERSION, /^src\/connect\.ts$/],
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
      /\bset(?:Timeout|Interval|Immediate)\b/,
      /\bhrtime\b/,
      /\bperformance\.now\b/,
    ],
    why: 'only runtime/clock.ts reads clocks and random numbers, so that tests control both',
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
  if (own !== undefined && own === other && room.name === 'a store') return true
  if (own === 's3' && KV.test(target)) return true
  if ((own === 'sqlite' || own === 'postgres') && SQL.test(target)) return true
  return room.may.some((pattern) => pattern.test(target))
}

/** One line for each violation: where, what, and why it matters. */
export const violations = (files: readonly SourceFile[]): string[] =>
  files.flatMap(({ path, text }) => {
    const room = ROOMS.find((one) => one.has(path))
    if (room === undefined)
      return [`${path} belongs to no room of CONTRIBUTING.md: every file has a place in the table`]
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
        `${path} has ${lines} lines; readers do not finish files over ${LONGEST_FILE}: split it by purpose`,
    )
