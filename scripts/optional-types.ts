/**
 * Makes declarations that use the types of an optional driver compile without it, even with `skipLibCheck: false`: then its types are
 * `any`. If the driver is installed, they are its real types.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs'

const { peerDependencies } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  readonly peerDependencies: Readonly<Record<string, string>>
}
const names = Object.keys(peerDependencies).join('|')
const NAMED = new RegExp(`(from |import\\()['"](${names})['"]`)

export const allowMissingDrivers = (dist: string): void => {
  for (const file of globSync(`${dist}/**/*.d.ts`)) {
    const text = readFileSync(file, 'utf8')
    const lines = text.split('\n').flatMap((line) => (NAMED.test(line) ? ['// @ts-ignore: optional', line] : [line]))
    const allowed = lines.join('\n')
    if (allowed !== text) writeFileSync(file, allowed)
  }
}
