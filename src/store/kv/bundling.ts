/**
 * One hint for several new tasks that are alike. Everyone who is to be in a bundle says when its task can be written, or that it
 * will not be; then the bundle is written with those who are left. Only the insert that wrote it makes tasks that name it.
 */
import type { Insertion } from '../store.ts'
import { newNonce } from './bodies.ts'
import { bundleFor, hintFor, likenessOf } from './names.ts'
import type { SteadyKeyValue } from './steady.ts'

/** More save hardly anything, and the tasks of a bundle go together: other workers read what is left of one that is half done. */
const MOST = 20

/** A place in a bundle. It has to be asked for its hint, or left: the others wait. */
export class Seat {
  readonly #bundle: Gathering
  readonly #own: string
  #isOpen = true

  constructor(bundle: Gathering, own: string) {
    this.#bundle = bundle
    this.#own = own
  }

  /** The hint, written. null: nobody else came, so the task writes its own. */
  hint(): Promise<string | null> {
    this.#isOpen = false
    return this.#bundle.join(this.#own)
  }

  leave(): void {
    if (this.#isOpen) this.#bundle.leave()
    this.#isOpen = false
  }
}

interface Waiting {
  readonly own: string
  readonly hint: PromiseWithResolvers<string | null>
}

class Gathering {
  readonly #kv: SteadyKeyValue
  readonly #here: Waiting[] = []
  #awaited: number

  constructor(kv: SteadyKeyValue, seats: number) {
    this.#kv = kv
    this.#awaited = seats
  }

  join(own: string): Promise<string | null> {
    const hint = Promise.withResolvers<string | null>()
    this.#here.push({ own, hint })
    this.leave()
    return hint.promise
  }

  leave(): void {
    if (--this.#awaited === 0) void this.#write()
  }

  async #write(): Promise<void> {
    const owns = this.#here.map(({ own }) => own)
    if (owns.length < 2) {
      for (const { hint } of this.#here) hint.resolve(null)
      return
    }
    const { key, hints } = bundleFor(owns, newNonce())
    try {
      await this.#kv.create(key, '')
      for (const [n, { hint }] of this.#here.entries()) hint.resolve(hints[n]!)
    } catch (error) {
      for (const { hint } of this.#here) hint.reject(error)
    }
  }
}

/** Who may share a hint with whom. */
export const seatsFor = (
  kv: SteadyKeyValue,
  insertions: readonly Insertion[],
  namesOf: (insertion: Insertion) => readonly string[],
): ReadonlyMap<Insertion, Seat> => {
  const seats = new Map<Insertion, Seat>()
  const { longestHint } = kv
  if (longestHint === undefined || insertions.length < 2) return seats
  for (const alike of groupsOf(independent(insertions, namesOf))) {
    const room = Math.min(MOST, Math.floor((longestHint - alike[0]!.own.length - NAME) / ID))
    for (let i = 0; room > 1 && i < alike.length - 1; i += room) {
      const some = alike.slice(i, i + room)
      const gathering = new Gathering(kv, some.length)
      for (const { insertion, own } of some) seats.set(insertion, new Seat(gathering, own))
    }
  }
  return seats
}

/** In a key: an id and the sign before it, where ids have nothing in common; a bundle's name and what stands around it. */
const ID = 37
const NAME = 40

/** One that shares a name with another comes after it, so the others must not wait for it. */
const independent = (
  insertions: readonly Insertion[],
  namesOf: (insertion: Insertion) => readonly string[],
): readonly Insertion[] => {
  const uses = new Map<string, number>()
  for (const name of insertions.flatMap(namesOf)) uses.set(name, (uses.get(name) ?? 0) + 1)
  return insertions.filter((insertion) => namesOf(insertion).every((name) => uses.get(name) === 1))
}

interface Alike {
  readonly insertion: Insertion
  /** The hint that its task would write for itself. */
  readonly own: string
}

const groupsOf = (insertions: readonly Insertion[]): readonly (readonly Alike[])[] => {
  const groups = new Map<string, Alike[]>()
  for (const insertion of insertions) {
    const own = hintFor(insertion.task, 1, null)
    if (own === null) continue
    const likeness = likenessOf(own)
    const alike = groups.get(likeness)
    if (alike === undefined) groups.set(likeness, [{ insertion, own }])
    else alike.push({ insertion, own })
  }
  return [...groups.values()]
}
