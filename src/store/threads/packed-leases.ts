/** Leases on their way to a keeper on another thread: one text each for ids and tokens, because copying is what costs. */
import type { HeldLease } from '../store.ts'

export interface PackedLeases {
  readonly slots: Int32Array
  readonly ids: string
  readonly tokens: string
}

/** In no id and no token, which are made of ids and names of our own. */
const SEPARATOR = '\x01'

export const packLeases = (leases: readonly HeldLease[]): PackedLeases => {
  const slots = new Int32Array(leases.length)
  let [ids, tokens] = ['', '']
  for (let i = 0; i < leases.length; i++) {
    const { slot, id, token } = leases[i]!
    slots[i] = slot
    ids += i === 0 ? id : SEPARATOR + id
    tokens += i === 0 ? token : SEPARATOR + token
  }
  return { slots, ids, tokens }
}

/** Those for whose slots `isHeld` says so: most have ended before their keeper looks at them for the first time. */
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
