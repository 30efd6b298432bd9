/**
 * Bundles src into the JavaScript of dist: few files instead of a hundred and fifty, because the command line loads each of them
 * at every start. Code shared by the entries is in dist/chunks once, so that the command line and the library have the same
 * error class.
 */
import { globSync, readFileSync } from 'node:fs'
import { relative } from 'node:path/posix'
import { build, type Plugin } from 'rolldown'

const root = new URL('..', import.meta.url).pathname
const { exports } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as {
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>
}

/** `./dist/store/store.js` as `store/store`. */
const published = Object.values(exports).flatMap((one) => (typeof one === 'string' ? [] : [one.default.slice(7, -3)]))

/** Files that are started by their path, so that no import refers to them. */
const started = [
  'cli/main',
  'cli/demo/worker',
  'runtime/worker/isolate/child',
  'store/sqlite/examiner',
  ...globSync('store/*/thread.ts', { cwd: `${root}src` }).map((file) => file.slice(0, -3)),
]

/** Modules find threads, pages and package.json relative to themselves, so `import.meta.url` must be the module's place and not its chunk's. */
const ownPlaces: Plugin = {
  name: 'own-places',
  transform(code, id) {
    const place = relative(`${root}src`, id).replace(/\.ts$/, '.js')
    return inLines(code, 'import.meta.url', () => `__placeOf('${place}')`)
  },
  renderChunk(code, { fileName }) {
    const from = (place: string): string => relative(`${fileName}/..`, place).replace(/^(?!\.)/, './')
    return inLines(code, /__placeOf\(["'](.+?)["']\)/g, (_, place) =>
      place === fileName ? 'import.meta.url' : placeFrom(from(place!)),
    )
  },
}

/**
 * Not as `new URL(path, import.meta.url)`: bundlers of applications take that for a file to copy, and Turbopack fails the build when the
 * file does not exist. In a bundle for CommonJS there is no `import.meta.url`.
 */
const placeFrom = (path: string): string => `(import.meta.url && import.meta.url.replace(/[^/]*$/, '${path}'))`

const INLINED = 'store/sqlite/inlined-threads.ts'

/** The threads of SQLite as text, for a program that is bundled into one file and has no other file to start. */
const inlinedThreads: Plugin = {
  name: 'inlined-threads',
  async load(id) {
    if (relative(`${root}src`, id) !== INLINED) return null
    const [thread, examiner] = await Promise.all(['thread', 'examiner'].map(textOfThread))
    return { code: `export const INLINED = ${JSON.stringify({ thread, examiner })}`, moduleType: 'js' }
  },
}

const textOfThread = async (name: string): Promise<string> => {
  const { output } = await build({
    input: `${root}src/store/sqlite/${name}.ts`,
    platform: 'node',
    write: false,
    logLevel: 'warn',
    output: { format: 'cjs', codeSplitting: false, minify: true },
  })
  return output[0].code
}

/** `null`: no line moves, so the existing source map is still valid. */
const inLines = (code: string, what: string | RegExp, by: (found: string, part?: string) => string) => {
  const replaced = code.replaceAll(what, by)
  return replaced === code ? null : { code: replaced, map: null }
}

export const bundle = async (dir: string): Promise<void> => {
  await build({
    input: Object.fromEntries([...published, ...started].map((name) => [name, `${root}src/${name}.ts`])),
    platform: 'node',
    external: (id) => !/^[./]/.test(id),
    plugins: [ownPlaces, inlinedThreads],
    logLevel: 'warn',
    output: { dir, entryFileNames: '[name].js', chunkFileNames: 'chunks/[name]-[hash].js', sourcemap: true },
  })
}
