/** What is shipped: bundled, and still each module finds what it starts or reads by its address. */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const DIST = new URL('../../dist/', import.meta.url)
const sources = globSync('src/**/*.ts', { cwd: new URL('../..', import.meta.url) }).map((path) => ({
  path: path.slice('src/'.length),
  text: readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8'),
}))

test('every module that a thread or a process starts from is there', () => {
  const named = sources.flatMap(({ path, text }) =>
    [...text.matchAll(/'(\.\/[\w-]+\.js)'/g)].map(([, name]) => new URL(name!, new URL(path, DIST))),
  )
  const keepers = sources
    .filter(({ text }) => text.includes('beside: import.meta.url'))
    .map(({ path }) => new URL('./thread.js', new URL(path, DIST)))
  const started = sources.flatMap(({ path, text }) =>
    [...text.matchAll(/threadFile\(import\.meta\.url, '([\w-]+)'\)/g)].map(
      ([, name]) => new URL(`./${name}.js`, new URL(path, DIST)),
    ),
  )
  // By a variable there.
  const sqlite = ['thread', 'examiner'].map((name) => new URL(`store/sqlite/${name}.js`, DIST))
  const wanted = [...named, ...keepers, ...started, ...sqlite]
  expect(wanted.length).toBeGreaterThanOrEqual(7)
  expect(wanted.filter((url) => !existsSync(url)).map(String)).toEqual([])
})

test('a module in a shared chunk gets its own location', () => {
  const chunks = globSync('chunks/*.js', { cwd: DIST }).map((name) => readFileSync(new URL(name, DIST), 'utf8'))
  const places = chunks.flatMap((code) => [
    ...code.matchAll(/import\.meta\.url\.replace\(\/\[\^\/\]\*\$\/,\s*["'`]([^"'`]+)["'`]\)/g),
  ])
  expect(places.length).toBeGreaterThan(3)
  for (const [, place] of places) {
    const source = new URL(place!, new URL('chunks/', DIST)).pathname.slice(DIST.pathname.length)
    expect(sources.map(({ path }) => path)).toContain(source.replace(/\.js$/, '.ts'))
  }
  expect(chunks.filter((code) => code.includes('__placeOf('))).toEqual([])
})

/** Turbopack takes this form for a file to copy, and fails the build of an application when it does not exist. */
const ASKS_FOR_A_FILE = /new URL\((["'`])([^"'`]+)\1,\s*(?:import\.meta\.url|`\$\{import\.meta\.url\}`)\)/g

test('no code asks the bundler of an application for a file that does not exist', () => {
  const asked = (code: string, place: string): string[] =>
    [...code.matchAll(ASKS_FOR_A_FILE)].map(([, , path]) => new URL(path!, new URL(place, DIST)).href)
  const planted = 'const beside = new URL("./thread-code.js", import.meta.url).href'
  expect(asked(planted, 'chunks/x.js').filter((url) => !existsSync(new URL(url)))).toHaveLength(1)
  const all = globSync('**/*.js', { cwd: DIST }).flatMap((name) =>
    asked(readFileSync(new URL(name, DIST), 'utf8'), name),
  )
  expect(all.filter((url) => !existsSync(new URL(url)))).toEqual([])
})

test('an error of the command line is an error of the library: what they share is there once', async () => {
  const { HoldfastError } = (await import(new URL('index.js', DIST).href)) as typeof import('../../src/index.ts')
  const { openSqlite } = (await import(
    new URL('store/sqlite/store.js', DIST).href
  )) as typeof import('../../src/store/sqlite/store.ts')
  await expect(openSqlite('/nowhere/at/all.db', { create: false })).rejects.toBeInstanceOf(HoldfastError)
})
