/**
 * Bundles src into the JavaScript of dist: few files instead of a hundred and fifty, because the command line loads each of them
 * at every start. Code shared by the entries is in dist/chunks once, so that the command line and the library have the same
 * error class.
 */
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { relative } from 'node:path/posix'
import { brotliCompressSync } from 'node:zlib'
import { build, type OutputOptions, type Plugin } from 'rolldown'
import { withShortLines } from './short-lines.ts'

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

/** The threads of SQLite as compressed text, for a program that is bundled into one file and has no other file to start. */
const inlinedThreads: Plugin = {
  name: 'inlined-threads',
  async load(id) {
    if (relative(`${root}src`, id) !== INLINED) return null
    const [thread, examiner] = await Promise.all(['thread', 'examiner'].map(textOfThread))
    // Together, because most of one is in the other.
    const packed = brotliCompressSync(JSON.stringify({ thread, examiner })).toString('base64')
    return {
      code: `import { brotliDecompressSync } from 'node:zlib'
        export const INLINED = JSON.parse(brotliDecompressSync(Buffer.from('${packed}', 'base64')))`,
      moduleType: 'js',
    }
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

/** Functions and classes keep their names, which stack traces and logs show. */
const SMALL: OutputOptions['minify'] = {
  compress: { keepNames: { function: true, class: true } },
  mangle: { keepNames: true },
  codegen: { removeWhitespace: true },
}

export const bundle = async (dir: string): Promise<void> => {
  const { output } = await build({
    input: Object.fromEntries([...published, ...started].map((name) => [name, `${root}src/${name}.ts`])),
    platform: 'node',
    external: (id) => !/^[./]/.test(id),
    plugins: [ownPlaces, inlinedThreads],
    logLevel: 'warn',
    output: {
      dir,
      entryFileNames: '[name].js',
      chunkFileNames: 'chunks/[name]-[hash].js',
      minify: SMALL,
      // The maps are not in the package, so no file refers to its map.
      sourcemap: 'hidden',
    },
  })
  // One that only exports from others has no map, and no statement but that.
  for (const { type, fileName } of output)
    if (type === 'chunk' && existsSync(`${dir}/${fileName}.map`)) await breakLines(`${dir}/${fileName}`)
}

const breakLines = async (file: string): Promise<void> => {
  const map = JSON.parse(readFileSync(`${file}.map`, 'utf8'))
  const { code, mappings } = await withShortLines(file, readFileSync(file, 'utf8'), map.mappings)
  writeFileSync(file, code)
  writeFileSync(`${file}.map`, JSON.stringify({ ...map, mappings }))
}
