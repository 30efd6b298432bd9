/** Short digests of payloads, so that logs need not contain payloads. Equal JSON values have equal digests, whatever the order of their keys. */
import { createHash } from 'node:crypto'
import type { Encoding } from '../../core/task.ts'
import { canonicalJson, decodePayload } from '../../core/values/payload.ts'

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 32)

/** The digest of a payload as it is stored. */
export const storedDigest = (text: string, encoding: Encoding): string =>
  digestOf(encoding === 'json' ? canonicalJson(decodePayload(text, 'json')) : `base64 ${text}`)

/** The digest of an input as a handler or a caller sees it. */
export const valueDigest = (value: unknown): string =>
  digestOf(
    value instanceof Uint8Array
      ? `base64 ${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64')}`
      : canonicalJson(value),
  )
