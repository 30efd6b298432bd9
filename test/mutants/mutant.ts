/** A bug as somebody might write it: one text of a source file replaced by another. */
export interface Mutant {
  /** Below src/. */
  readonly file: string
  /** Stands there exactly once. */
  readonly find: string
  readonly replace: string
  readonly breaks: string
  /** The test files that turn red, below test/. */
  readonly tests: readonly string[]
  /** Of vitest.config.ts. Default quick. */
  readonly project?: 'quick' | 'crash' | 'timed' | 'servers'
}

/** The source with the bug in it. Throws if the text is not there exactly once: the table must follow the source. */
export const planted = (source: string, { file, find, replace }: Mutant): string => {
  const parts = source.split(find)
  if (parts.length !== 2) throw new Error(`src/${file}: ${JSON.stringify(find)} stands there ${parts.length - 1} times`)
  return parts.join(replace)
}
