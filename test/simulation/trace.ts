/** The story of a seed, one line for each thing that happens. Its hash shows whether two runs were the same. */
import { createHash } from 'node:crypto'
import type { Kernel } from './kernel.ts'

const HASHED_AT_ONCE = 65_536

export class Trace {
  readonly #kernel: Kernel
  readonly #hash = createHash('sha256')
  /** Many lines together are hashed faster than each alone. */
  #unhashed = ''
  /** null: only the hash is kept. */
  readonly lines: string[] | null

  constructor(kernel: Kernel, keep: boolean) {
    this.#kernel = kernel
    this.lines = keep ? [] : null
  }

  line(who: string, what: string): void {
    const line = `${Math.round(this.#kernel.now * 1_000) / 1_000} ${who}: ${what}`
    this.#unhashed += line
    if (this.#unhashed.length > HASHED_AT_ONCE) this.#digest()
    this.lines?.push(line)
  }

  #digest(): void {
    this.#hash.update(this.#unhashed)
    this.#unhashed = ''
  }

  /** A value as text: everything in it is part of the hash, so real time or chance in any field would show. */
  digest(value: unknown): string {
    return JSON.stringify(value) ?? ''
  }

  hash(): string {
    this.#digest()
    return this.#hash.copy().digest('hex').slice(0, 16)
  }
}
