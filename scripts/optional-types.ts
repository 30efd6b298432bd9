/**
 * Makes declarations compile where something is not installed, even with `skipLibCheck: false`: the types of an optional driver or of Node
 * are `any` then, and the library of `Symbol.asyncDispose` is named. If they are installed, they are the real types.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs'

const { peerDependencies } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  readonly peerDependencies: Readonly<Record<string, string>>
}
const names = Object.keys(peerDependencies).join('|')
const NAMED = new RegExp(`(from |import\\()['"](${names}|node:[a-z/]+)['"]`)
const DISPOSABLE = '/// <reference lib="esnext.disposable" />\n'

export const allowMissingTypes = (dist: string): void => {
  for (const file of globSync(`${dist}/**/*.d.ts`)) {
    const text = readFileSync(file, 'utf8')
    const lines = text.split('\n').flatMap((line) => (NAMED.test(line) ? ['// @ts-ignore: optional', line] : [line]))
    const allowed = `${text.includes('Symbol.asyncDispose') ? DISPOSABLE : ''}${lines.join('\n')}`
    if (allowed !== text) writeFileSync(file, allowed)
  }
}
