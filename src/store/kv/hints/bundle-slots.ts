/**
 * One hint for several new tasks of one insert. Each task has a slot. It takes the bundle's hint when it can be written, or gives
 * its slot up. The bundle is written as soon as every slot is decided.
 */
import type { Insertion } from '../../store.ts'
import { newNonce } from '../records/bodies.ts'
import { bundleFor, bundleGroupOf } from '../records/bundle-names.ts'
import { hintFor } from '../records/hint-names.ts'
import type { Hints } from './hints.ts'

/** A larger bundle saves little, and more workers would read tasks of it that are already done. */
const MOST = 20

/** Every slot must be taken or given up: the other tasks of the bundle wait for it. */
export class BundleSlot {
  readonly #writer: BundleWriter
  readonly #own: string
  #isOpen = true

  /** `own`: the hint that the task would have without a bundle. */
  constructor(writer: BundleWriter, own: string) {
    this.#writer = writer
    this.#own = own
  }

  /** The announced hint. null: no other task is in the bundle, so the task announces its own. */
  take(): Promise<string | null> {
    this.#isOpen = false
    return this.#writer.join(this.#own)
  }

  giveUp(): void {
    if (this.#isOpen) this.#writer.leave()
    this.#isOpen = false
  }
}

interface Member {
  readonly own: string
  readonly hint: PromiseWithResolvers<string | null>
}

class BundleWriter {
  readonly #hints: Hints
  readonly #members: Member[] = []
  #undecided: number

  constructor(hints: Hints, slots: number) {
    this.#hints = hints
    this.#undecided = slots
  }

  join(own: string): Promise<string | null> {
    const hint = Promise.withResolvers<string | null>()
    this.#members.push({ own, hint })
    this.leave()
    return hint.promise
  }

  leave(): void {
    if (--this.#undecided === 0) void this.#write()
  }

  async #write(): Promise<void> {
    const owns = this.#members.map(({ own }) => own)
    if (owns.length < 2) {
      for (const { hint } of this.#members) hint.resolve(null)
      return
    }
    const { key, hints } = bundleFor(owns, newNonce())
    try {
      await this.#hints.announce(key)
      for (const [n, { hint }] of this.#members.entries()) hint.resolve(hints[n]!)
    } catch (error) {
      for (const { hint } of this.#members) hint.reject(error)
    }
  }
}

/** Groups insertions whose tasks can share a hint. An insertion that is not in the map announces its own. */
export const bundleSlotsFor = (
  hints: Hints,
  insertions: readonly Insertion[],
  namesOf: (insertion: Insertion) => readonly string[],
): ReadonlyMap<Insertion, BundleSlot> => {
  const slots = new Map<Insertion, BundleSlot>()
  const { longestBundle } = hints
  if (longestBundle === undefined || insertions.length < 2) return slots
  for (const group of groupsOf(independent(insertions, namesOf))) {
    const size = Math.min(MOST, Math.floor((longestBundle - group[0]!.own.length - NAME) / ID))
    for (let i = 0; size > 1 && i < group.length - 1; i += size) {
      const members = group.slice(i, i + size)
      const writer = new BundleWriter(hints, members.length)
      for (const { insertion, own } of members) slots.set(insertion, new BundleSlot(writer, own))
    }
  }
  return slots
}

/** The most bytes of an id with its separator, and of a bundle's name with its separators. */
const ID = 37
const NAME = 40

/** Insertions that share an id or a key run one after another, so the others must not wait for them. */
const independent = (
  insertions: readonly Insertion[],
  namesOf: (insertion: Insertion) => readonly string[],
): readonly Insertion[] => {
  const uses = new Map<string, number>()
  for (const name of insertions.flatMap(namesOf)) uses.set(name, (uses.get(name) ?? 0) + 1)
  return insertions.filter((insertion) => namesOf(insertion).every((name) => uses.get(name) === 1))
}

interface Candidate {
  readonly insertion: Insertion
  readonly own: string
}

const groupsOf = (insertions: readonly Insertion[]): readonly (readonly Candidate[])[] => {
  const candidates = insertions.flatMap((insertion): Candidate[] => {
    const own = hintFor(insertion.task, 1, null)
    return own === null ? [] : [{ insertion, own }]
  })
  return [...Map.groupBy(candidates, ({ own }) => bundleGroupOf(own)).values()]
}
