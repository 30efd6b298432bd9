/** The text of a register: who runs under one limit. */
import type { Instant } from '../../../core/task.ts'
import { corrupt, newNonce } from '../records/bodies.ts'

/** One place. It is taken before the claim is written, so its task may not have the lease yet, or never get it. */
export interface Holder {
  readonly id: string
  /** Of the lease that the claim writes. */
  readonly token: string
  /** The task's sequence when the place was taken. The claim is the next write of the task, or fails. */
  readonly sequence: number
}

export interface PlaceBody {
  /** The name of the group, which its hash does not tell; null: the register of a queue. */
  readonly group: string | null
  readonly holders: readonly Holder[]
  /** Since when no place is taken; null: at least one is. */
  readonly emptyAt: Instant | null
  /** The deletion mark: a process is about to delete this register. */
  readonly deletingAt: Instant | null
}

export const encodePlaces = (body: PlaceBody): string => JSON.stringify({ nonce: newNonce(), ...body })

export const decodePlaces = (key: string, text: string): PlaceBody => {
  try {
    const body = JSON.parse(text) as PlaceBody
    if (Array.isArray(body.holders)) return body
  } catch {
    // Reported below.
  }
  throw corrupt(key, 'holds no places')
}
