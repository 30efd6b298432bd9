/** The encoding of leases for a keeper on another thread: one text for ids and one for tokens, because copying dominates the cost. */
import type { HeldLease } from '../store.ts'

export interface PackedLeases {
  /** Monotonic: the leases began no earlier. */
  readonly since: number
  readonly slots: Int32Array
  readonly ids: string
  readonly tokens: string
}

/** Never part of an id or a token: Holdfast generates both. */
const SEPARATOR = '\x01'

/** For a thread that takes the place of another: it is not known how old the leases are, so all are renewed at once. */
export const SINCE_LONG = Number.NEGATIVE_INFINITY

export const packLeases = (leases: readonly HeldLease[], since: number): PackedLeases => {
  const slots = new Int32Array(leases.length)
  let [ids, tokens] = ['', '']
  for (let i = 0; i < leases.length; i++) {
    const { slot, id, token } = leases[i]!
    slots[i] = slot
    ids += i === 0 ? id : SEPARATOR + id
    tokens += i === 0 ? token : SEPARATOR + token
  }
  return { since, slots, ids, tokens }
}

/** Unpacks only leases whose slot is still held: most have ended before the keeper first looks at them. */
export const unpackLeases = (packed: PackedLeases, isHeld: (slot: number) => boolean): HeldLease[] => {
  const leases: HeldLease[] = []
  let [ids, tokens]: (readonly string[] | null)[] = [null, null]
  for (const [i, slot] of packed.slots.entries()) {
    if (!isHeld(slot)) continue
    ids ??= packed.ids.split(SEPARATOR)
    tokens ??= packed.tokens.split(SEPARATOR)
    leases.push({ slot, id: ids[i]!, token: tokens[i]! })
  }
  return leases
}
