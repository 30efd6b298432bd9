/**
 * From src to the JavaScript of dist: few files instead of a hundred and fifty, because a shell pays for each of them at every
 * prompt. What the entries share is in dist/chunks once, so an error of the command line is an error of the library.
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

/** Started by their addresses, which no import shows. */
const started = [
  'cli/main',
  'cli/demo/worker',
  'runtime/worker/isolate/child',
  'store/sqlite/examiner',
  ...globSync('store/*/thread.ts', { cwd: `${root}src` }).map((file) => file.slice(0, -3)),
]

/** A module that asks where it is finds threads, pages and package.json from there: it is told its own place, not its chunk's. */
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

/** Written so that no bundler of an application takes it for a file to copy. In a bundle for CommonJS there is no `import.meta.url`. */
const placeFrom = (path: string): string => `(import.meta.url && new URL('${path}', \`\${import.meta.url}\`).href)`

const INLINED = 'store/sqlite/inlined-threads.ts'

/** Threads of SQLite as text: a program that is bundled into one file has no other file to start. */
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

/** No line moves, so the map that was there still holds: `null` says so. */
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
