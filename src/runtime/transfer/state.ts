/**
 * The stored state of a move, so that it can be killed at any point and run again: one document in each store, with the same
 * id. The one in the new store also lists the tasks whose copies are about to be written.
 */

import { HoldfastError } from '../../core/errors.ts'
import { TRANSFER_IN, TRANSFER_OUT } from '../../core/storage/document-names.ts'
import type { Instant } from '../../core/task.ts'
import { newId } from '../ids.ts'
import { withPatience } from '../patience.ts'
import { newOp, type Session } from '../session.ts'

interface Outgoing {
  readonly id: string
  readonly to: string
  readonly at: string
}

interface Incoming {
  readonly id: string
  readonly from: string
  readonly at: string
  /** The run of the move that wrote this last. */
  readonly by: string
  /** Ids of tasks that may have a copy here although their original is not archived. */
  readonly underWay: readonly string[]
}

export class MoveState {
  readonly id: string
  readonly startedAt: Instant
  /** As left by the previous run. */
  readonly underWay: readonly string[]
  readonly #from: Session
  readonly #to: Session
  readonly #incoming: Incoming
  #version: number

  private constructor(from: Session, to: Session, incoming: Incoming, version: number) {
    this.#from = from
    this.#to = to
    this.id = incoming.id
    this.startedAt = Date.parse(incoming.at)
    this.underWay = incoming.underWay
    this.#incoming = { ...incoming, by: newOp() }
    this.#version = version
  }

  /** Continues the unfinished move between these two stores, or begins one. */
  static async begin(from: Session, to: Session): Promise<MoveState> {
    await mustNotReceive(from, to)
    const found = await read<Incoming>(to, TRANSFER_IN)
    const outgoing = await leaving(from, to, found?.value.id)
    const begun: Incoming = found?.value ?? {
      id: outgoing.id,
      from: from.store.address,
      at: new Date(to.time.now()).toISOString(),
      by: '',
      underWay: [],
    }
    const state = new MoveState(from, to, begun, found?.version ?? 0)
    // Also when continuing: from here on, an older run that is still alive finds that it has been replaced.
    await state.announce(begun.underWay)
    return state
  }

  /** Call before copies of these tasks are written. Throws if another process has taken over the move. */
  async announce(underWay: readonly string[]): Promise<void> {
    const { documents } = this.#to.store
    const value = JSON.stringify({ ...this.#incoming, underWay })
    const version = await withPatience(this.#to, () => documents.put(TRANSFER_IN, value, this.#version))
    if (version !== null) {
      this.#version = version
      return
    }
    // Either the reply was lost, or another process wrote.
    const there = await withPatience(this.#to, () => documents.get(TRANSFER_IN))
    if (there?.value !== value)
      throw new HoldfastError('MOVE_UNDER_WAY', `another process continues the move into ${this.#to.store.address}`)
    this.#version = there.version
  }

  async end(): Promise<void> {
    await this.announce([])
    const { documents } = this.#to.store
    await withPatience(this.#to, () => documents.delete(TRANSFER_IN, this.#version))
    const outgoing = await read<Outgoing>(this.#from, TRANSFER_OUT)
    if (outgoing?.value.id === this.id)
      await withPatience(this.#from, () => this.#from.store.documents.delete(TRANSFER_OUT, outgoing.version))
  }
}

/** A store with an unfinished move into it cannot be moved on. */
const mustNotReceive = async (from: Session, to: Session): Promise<void> => {
  const incoming = await read<Incoming>(from, TRANSFER_IN)
  if (incoming === null) return
  const same = await read<Incoming>(to, TRANSFER_IN)
  if (same?.value.id === incoming.value.id) throw sameStore(from)
  throw unfinished(incoming.value.from, from.store.address)
}

/** Finds or creates the document in the old store. `id` is that of the unfinished move into the new store. */
const leaving = async (from: Session, to: Session, id: string | undefined): Promise<Outgoing> => {
  const found = await read<Outgoing>(from, TRANSFER_OUT)
  if (id !== undefined && found?.value.id !== id) {
    const incoming = await read<Incoming>(to, TRANSFER_IN)
    throw unfinished(incoming?.value.from ?? 'another store', to.store.address)
  }
  if (found !== null && id === undefined && found.value.to !== to.store.address)
    throw unfinished(from.store.address, found.value.to)
  const outgoing = found?.value ?? (await leave(from, to))
  if ((await read<Outgoing>(to, TRANSFER_OUT))?.value.id !== outgoing.id) return outgoing
  const there = await read<Outgoing>(from, TRANSFER_OUT)
  if (there !== null) await withPatience(from, () => from.store.documents.delete(TRANSFER_OUT, there.version))
  throw sameStore(from)
}

const leave = async (from: Session, to: Session): Promise<Outgoing> => {
  const made: Outgoing = { id: newId(), to: to.store.address, at: new Date(from.time.now()).toISOString() }
  const version = await withPatience(from, () => from.store.documents.put(TRANSFER_OUT, JSON.stringify(made), 0))
  if (version !== null) return made
  const there = await read<Outgoing>(from, TRANSFER_OUT)
  if (there?.value.id === made.id) return made
  throw unfinished(from.store.address, there?.value.to ?? 'another store')
}

const read = async <T>(session: Session, name: string): Promise<{ value: T; version: number } | null> => {
  const document = await withPatience(session, () => session.store.documents.get(name))
  return document === null ? null : { value: JSON.parse(document.value) as T, version: document.version }
}

const sameStore = ({ store }: Session): HoldfastError =>
  new HoldfastError('INVALID_OPTION', `${store.address} cannot be moved to itself`, { field: 'to' })

const unfinished = (from: string, to: string): HoldfastError =>
  new HoldfastError('MOVE_UNDER_WAY', `a move from ${from} to ${to} is not finished`, { from, to })
