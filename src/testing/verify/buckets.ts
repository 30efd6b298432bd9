/** Groups facts by a key without holding them all in memory: each fact is written to one of several files, which are then read one by one. */
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** With a million tasks and their histories, each file has about 30 MB. */
const FILES = 64
/** Characters that are buffered for each file. */
const MOST_WAITING = 65_536

export class Buckets<Fact> {
  readonly #folder = mkdtempSync(join(tmpdir(), 'holdfast-verify-'))
  readonly #files = Array.from({ length: FILES }, (_, i) => openSync(join(this.#folder, `${i}`), 'w', 0o600))
  readonly #waiting: string[] = Array.from({ length: FILES }, () => '')

  add(key: string, fact: Fact): void {
    const i = bucketOf(key)
    this.#waiting[i] += `${JSON.stringify([key, fact])}\n`
    if (this.#waiting[i]!.length > MOST_WAITING) this.#flush(i)
  }

  /** Every key with all of its facts, in the order in which they were added. */
  *groups(): Generator<readonly [key: string, facts: readonly Fact[]], void, undefined> {
    for (let i = 0; i < FILES; i++) {
      this.#flush(i)
      const groups = new Map<string, Fact[]>()
      for (const line of readFileSync(join(this.#folder, `${i}`), 'utf8').split('\n')) {
        if (line === '') continue
        const [key, fact] = JSON.parse(line) as [string, Fact]
        const known = groups.get(key)
        if (known === undefined) groups.set(key, [fact])
        else known.push(fact)
      }
      yield* groups
    }
  }

  remove(): void {
    for (const file of this.#files) closeSync(file)
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #flush(i: number): void {
    writeSync(this.#files[i]!, this.#waiting[i]!)
    this.#waiting[i] = ''
  }
}

/** FNV-1a. */
const bucketOf = (key: string): number => {
  let hash = 0x811c9dc5
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  return (hash >>> 0) % FILES
}
