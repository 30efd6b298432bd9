/**
 * Bundles Holdfast's source into one function. Its globals belong to the process that is running: own clock, own chance, own state. All
 * processes run the same evaluation of it, so that the machine compiles what is hot; `isIsolated` gives each process one of its own.
 */
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import vm from 'node:vm'
import { build, type Plugin } from 'esbuild'
import { type Mutant, planted } from '../mutants/mutant.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

export type Holdfast = typeof import('./entry.ts')

/** What the code may see of the world. A global that is missing here would be the real one. */
export interface World {
  readonly setTimeout: unknown
  readonly clearTimeout: unknown
  readonly setInterval: unknown
  readonly clearInterval: unknown
  readonly setImmediate: unknown
  readonly clearImmediate: unknown
  readonly performance: unknown
  readonly Date: unknown
  readonly Math: unknown
  readonly process: unknown
  readonly crypto: unknown
  readonly fetch: unknown
  readonly console: unknown
  readonly globalThis: unknown
  readonly require: (name: string) => unknown
  /** State of a module, made once for each process that asks for it. */
  readonly perProcess: <State>(make: () => State) => () => State
}

const NAMES: readonly (keyof World)[] = [
  'setTimeout',
  'clearTimeout',
  'setInterval',
  'clearInterval',
  'setImmediate',
  'clearImmediate',
  'performance',
  'Date',
  'Math',
  'process',
  'crypto',
  'fetch',
  'console',
  'globalThis',
  'require',
  'perProcess',
]

/** Stores with threads or servers of their own: simulated processes are given a simulated store instead. */
const NOT_SIMULATED = /\/store\/(sqlite|postgres)\/store\.ts$/

const leftOut: Plugin = {
  name: 'left-out',
  setup(bundler) {
    bundler.onResolve({ filter: NOT_SIMULATED }, () => ({ path: 'not-simulated', external: true }))
  },
}

interface Patch {
  readonly file: string
  readonly changes: readonly (readonly [find: string, replace: string])[]
}

/** What modules remember of the process they are in. A test compares the traces with those of processes that share no module. */
const STATES: readonly Patch[] = [
  {
    file: 'runtime/session.ts',
    changes: [
      [
        "const ofThisProcess = randomBytes(9).toString('base64url')\nlet count = 0\n",
        "const own = perProcess(() => ({ prefix: randomBytes(9).toString('base64url'), count: 0 }))\n",
      ],
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it stands so in the source
      ['`${ofThisProcess}-${(count++).toString(36)}`', '`${own().prefix}-${(own().count++).toString(36)}`'],
    ],
  },
  {
    file: 'runtime/ids.ts',
    changes: [
      ['const words = ', 'const own = perProcess(() => {\nconst words = '],
      [
        'export const newId = (): string => generator.generate().toString()',
        'return generator\n})\nexport const newId = (): string => own().generate().toString()',
      ],
    ],
  },
  {
    file: 'store/kv/records/bodies.ts',
    changes: [
      [
        "const processNonce = randomBytes(9).toString('base64url')\nlet nonces = 0\n",
        "const own = perProcess(() => ({ prefix: randomBytes(9).toString('base64url'), nonces: 0 }))\n",
      ],
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it stands so in the source
      ['`${processNonce}${(++nonces).toString(36)}`', '`${own().prefix}${(++own().nonces).toString(36)}`'],
    ],
  },
  {
    file: 'store/s3/proof-record.ts',
    changes: [
      [
        'const provedHere = new Map<string, Proved>()',
        'const provedHere = perProcess(() => new Map<string, Proved>())',
      ],
      ['provedHere.get(', 'provedHere().get('],
      ['provedHere.set(', 'provedHere().set('],
      ['provedHere.delete(', 'provedHere().delete('],
    ],
  },
]

const replacedOnce = (text: string, find: string, replace: string, file: string): string => {
  if (text.split(find).length !== 2) throw new Error(`${file} does not have exactly one: ${find}`)
  return text.replace(find, () => replace)
}

/** With the state of modules per process, and a bug from a table of mutants, changed while a file is read: no copy of the repository is needed. */
const changing = (mutant: Mutant | undefined): Plugin => ({
  name: 'changing',
  setup(bundler) {
    bundler.onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => {
      const file = relative(`${root}src`, path)
      const state = STATES.find((patch) => patch.file === file)
      const isBroken = mutant?.file === file
      if (state === undefined && !isBroken) return null
      let text = readFileSync(path, 'utf8')
      if (isBroken) text = planted(text, mutant)
      for (const [find, replace] of state?.changes ?? []) text = replacedOnce(text, find, replace, file)
      return { contents: text, loader: 'ts' }
    })
  },
})

/** The source as one JavaScript text. */
export const bundled = async (mutant?: Mutant): Promise<string> => {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('./entry.ts', import.meta.url))],
    bundle: true,
    write: false,
    format: 'cjs',
    platform: 'node',
    target: 'node22',
    // Becomes require, which each process answers itself.
    supported: { 'dynamic-import': false },
    external: ['@aws-sdk/*', '@nats-io/*', 'pg', '@opentelemetry/api'],
    plugins: [leftOut, changing(mutant)],
    logOverride: { 'empty-import-meta': 'silent' },
  })
  return outputFiles[0]!.text
}

/** What a process runs. The world is asked for once where processes share one evaluation. */
export type Program = (world: World) => Holdfast

export const compiled = (text: string, isIsolated = false): Program => {
  const run = vm.compileFunction(text, ['module', 'exports', ...NAMES], { filename: 'holdfast-simulated.js' })
  let shared: Holdfast | undefined
  return (world) => {
    if (shared !== undefined) return shared
    const module = { exports: {} }
    run(module, module.exports, ...NAMES.map((name) => world[name]))
    const made = module.exports as Holdfast
    if (!isIsolated) shared = made
    return made
  }
}
