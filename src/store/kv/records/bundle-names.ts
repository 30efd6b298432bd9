/** The keys of bundles: one key with the hints of several tasks. */
import { type Hint, nameStart, parseHint } from './hint-names.ts'

/** Some servers store each part of a key between slashes as a file name of at most 255 bytes. This many ids fit in one. */
const IDS_IN_A_PART = 6

/** The hint that a task in the bundle names as its own. */
const memberOf = (own: string, bundle: string): string => `${own}~${bundle}`

/** The name of the bundle; null: the key is not a bundle. */
export const bundleOfKey = (key: string): string | null => {
  const [, , , , , , bundle, others] = key.slice(nameStart(key)).split('~')
  return others === undefined ? null : bundle!
}

/** A hint without its id. Hints that are equal in everything else can share a bundle. */
export const bundleGroupOf = (hint: string): string => {
  const start = nameStart(hint)
  return hint.slice(0, start) + hint.slice(hint.indexOf('~', start))
}

export interface Bundle {
  readonly key: string
  /** What each task names as its hint, in the order given. */
  readonly hints: readonly string[]
}

/** The name contains every id, so that a list is enough to find all tasks of the bundle. */
export const bundleFor = (hints: readonly string[], bundle: string): Bundle => {
  const [first] = hints
  const start = nameStart(first!)
  const ids = hints.map((hint) => hint.slice(start, hint.indexOf('~', start)))
  const shared = sharedStart(ids)
  const rests = ids.map((id, n) => `${n % IDS_IN_A_PART === 0 ? '/' : '.'}${id.slice(shared.length)}`)
  const facts = first!.slice(first!.indexOf('~', start))
  return {
    key: `${first!.slice(0, start)}${shared}${facts}~${bundle}~${rests.join('')}`,
    hints: hints.map((hint) => memberOf(hint, bundle)),
  }
}

const sharedStart = ([first = '', ...others]: readonly string[]): string => {
  let length = first.length
  for (const other of others) while (!other.startsWith(first.slice(0, length))) length--
  return first.slice(0, length)
}

/** The hint of a key, or the hints of all tasks in a bundle. Empty: not a key of Holdfast. */
export const hintsIn = (key: string): readonly Hint[] => {
  const start = nameStart(key)
  const [shared, type, priority, at, expiry, sequence, bundle, others] = key.slice(start).split('~')
  if (others === undefined) {
    const hint = parseHint(key)
    return hint === null ? [] : [hint]
  }
  const facts = `~${type}~${priority}~${at}~${expiry}~${sequence}`
  return others
    .slice(1)
    .split(/[./]/)
    .map((rest) => parseHint(memberOf(key.slice(0, start) + shared + rest + facts, bundle!))!)
}
