/** Where everything is stored: the keys of tasks, idempotency keys, documents and sweep entries. */
import { createHash } from 'node:crypto'
import type { Instant } from '../../../core/task.ts'

export const TASKS = 'tasks/'
export const READY = 'ready/'
export const KEYS = 'keys/'
export const SWEEP = 'sweep/'
export const DOCUMENTS = 'documents/'
export const IDENTITY = 'holdfast.json'
/** What a server was proved to honour, and the objects that were written to prove it. */
export const PROOF = 'proof/'
export const WAKE = 'wake.json'
/** Who runs under the limits of a queue. */
export const PLACES = 'places/'
const LARGE = 'large/'

/** A UUIDv7 begins with the time, so its last digits spread tasks evenly. */
export const taskKey = (id: string): string => `${TASKS}${id.slice(-2)}/${id}.json`

export const idOfTaskKey = (key: string): string => key.slice(key.lastIndexOf('/') + 1, -'.json'.length)

/** Prefixes that together cover all tasks. */
export const TASK_PARTS: readonly string[] = [...'0123456789abcdef'].map((digit) => TASKS + digit)

export const keyKey = (key: string): string => `${KEYS}${createHash('sha256').update(key).digest('hex')}.json`

/** Unique for every write, so that deleting one value cannot delete a value that another write refers to. */
export const largeValueKey = (id: string, nonce: string, field: string): string => `${LARGE}${id}/${nonce}-${field}`

export const documentKey = (name: string): string => DOCUMENTS + escaped(name)

export const documentName = (key: string): string => unescaped(key.slice(DOCUMENTS.length))

/** A group may have any name of 128 characters, which is too long for a key. */
export const groupHash = (group: string): string => createHash('sha256').update(group).digest('base64url').slice(0, 16)

export const queuePlacesKey = (queue: string): string => `${PLACES}${escaped(queue)}/queue.json`

export const groupPlacesKey = (queue: string, hash: string): string => `${PLACES}${escaped(queue)}/groups/${hash}.json`

export const isGroupPlaces = (key: string): boolean => key.split('/')[2] === 'groups'

/** Letters, digits, `_` and `-` stay; every other byte becomes `=` and two hexadecimal digits. */
export const escaped = (text: string): string =>
  text.replace(/[^A-Za-z0-9_-]/gu, (character) =>
    [...Buffer.from(character)].map((byte) => `=${byte.toString(16).padStart(2, '0')}`).join(''),
  )

export const unescaped = (text: string): string =>
  Buffer.from(
    text.replace(/=([0-9a-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  ).toString()

export const MINUTE = 60_000
export const minuteOf = (instant: Instant): string =>
  Math.floor(Math.max(0, instant) / MINUTE)
    .toString()
    .padStart(12, '0')

/** A reminder for the sweeper: delete `of` after `at`. */
export interface SweepEntry {
  readonly key: string
  readonly at: Instant
  readonly of: string
}

export const sweepKey = (at: Instant, of: string): string => `${SWEEP}${minuteOf(at)}/${escaped(of)}`

export const parseSweepEntry = (key: string): SweepEntry => {
  const [minute, of] = key.slice(SWEEP.length).split('/')
  return { key, at: (Number(minute) + 1) * MINUTE, of: unescaped(of!) }
}
