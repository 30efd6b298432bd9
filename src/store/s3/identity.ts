/** The identity of a store: one object, created once and checked now and then, in case the bucket was emptied or replaced. */
import { randomUUID } from 'node:crypto'
import { HoldfastError } from '../../core/errors.ts'
import { refuseNewer } from '../../core/storage/schema-version.ts'
import type { Entry, KeyValue } from '../kv/access/key-value.ts'
import { IDENTITY } from '../kv/records/names.ts'

/** The version of the layout of keys and bodies. */
const LAYOUT = 1

interface Identity {
  readonly holdfast: string
  readonly layout: number
}

type Place = Pick<KeyValue, 'address' | 'get' | 'create'>

const read = async (kv: Place): Promise<Identity | null> => parsed(kv, await kv.get(IDENTITY))

const parsed = (kv: Place, entry: Entry | null): Identity | null => {
  if (entry === null) return null
  try {
    const identity = JSON.parse(entry.value) as Identity
    if (typeof identity.holdfast === 'string' && typeof identity.layout === 'number') return identity
  } catch {
    // Reported below.
  }
  throw new HoldfastError('STORE_CORRUPT', `${kv.address}: ${IDENTITY} is not what Holdfast writes`)
}

export interface IdentityOptions {
  readonly create: boolean
  /** Runs before anything is created. */
  readonly beforeCreate?: () => Promise<void>
  readonly onCreated?: () => void
}

export const openIdentity = async (
  kv: Place,
  { create, beforeCreate, onCreated }: IdentityOptions,
): Promise<string> => {
  let found = await read(kv)
  if (found === null) {
    if (!create)
      throw new HoldfastError(
        'STORE_NOT_FOUND',
        `there is no Holdfast store at ${kv.address}: run \`holdfast init URL\`, or connect with create: true`,
      )
    await beforeCreate?.()
    const fresh: Identity = { holdfast: randomUUID(), layout: LAYOUT }
    if ((await kv.create(IDENTITY, JSON.stringify(fresh))) !== null) onCreated?.()
    found = await read(kv)
  }
  if (found === null)
    throw new HoldfastError('STORE_UNAVAILABLE', `${kv.address}: ${IDENTITY} was written and is missing`)
  refuseNewer(kv.address, found.layout, LAYOUT)
  return found.holdfast
}

/** Rejects if the store is no longer the one that was opened. */
export const checkIdentity = async (kv: Place, expected: string): Promise<void> => {
  const found = await read(kv)
  if (found?.holdfast === expected) return
  throw new HoldfastError('STORE_IDENTITY_CHANGED', `${kv.address} now holds another Holdfast store, or none`)
}

/** Processes that know the old identity stop. Returns the new one. */
export const renewIdentity = async (kv: Place & Pick<KeyValue, 'update'>): Promise<string> => {
  const entry = await kv.get(IDENTITY)
  const made: Identity = { holdfast: randomUUID(), layout: LAYOUT }
  const isWritten =
    parsed(kv, entry) !== null && (await kv.update(IDENTITY, JSON.stringify(made), entry!.mark)) !== null
  if (!isWritten) throw new HoldfastError('STORE_CONFLICT', `${kv.address}: another process replaced ${IDENTITY}`)
  return made.holdfast
}
