/** Refuses unknown options: a misspelt one would otherwise be ignored silently. */
import { HoldfastError } from '../errors.ts'

/** `of`: the function whose options they are: `submit`, `connect`. */
export const checkOptionNames = (options: object, known: Iterable<string>, of: string): void => {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw new HoldfastError('INVALID_OPTION', `the options of ${of} must be an object`, { field: 'options' })
  const names = known instanceof Set ? (known as ReadonlySet<string>) : new Set(known)
  for (const name in options) if (!names.has(name)) throw unknownOption(name, names, of)
}

export const unknownOption = (name: string, known: Iterable<string>, of: string): HoldfastError => {
  const meant = nearest(name, known)
  const advice = meant === null ? '' : `: did you mean ${meant}?`
  return new HoldfastError('INVALID_OPTION', `${name} is not an option of ${of}${advice}`, { field: name })
}

/** null if no known name is similar enough. A name is also similar if it ends in the same word: `key` and `idempotencyKey`, `runAt` and `at`. */
export const nearest = (name: string, known: Iterable<string>): string | null => {
  const wanted = name.toLowerCase()
  const word = lastWord(name)
  let best: string | null = null
  let least = Math.max(name.length > 3 ? 2 : 1, Math.ceil(name.length / 3)) + 1
  for (const candidate of known) {
    const steps = distance(wanted, candidate.toLowerCase())
    if (steps < least) {
      least = steps
      best = candidate
    }
  }
  return best ?? [...known].find((candidate) => lastWord(candidate) === word) ?? null
}

const lastWord = (name: string): string | undefined =>
  name
    .split(/(?=[A-Z])/)
    .at(-1)
    ?.toLowerCase()

/** The edit distance: letters to change, add or remove. */
const distance = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++)
      next[j] = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1))
    row = next
  }
  return row[b.length]!
}
