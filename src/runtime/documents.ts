/** The only way to change a document: read it, decide, and write it unless another process wrote first. */
import { HoldfastError } from '../core/errors.ts'
import type { Document } from '../store/store.ts'
import { withPatience } from './patience.ts'
import type { Session } from './session.ts'

const TRIES = 20

/**
 * `decide` receives the current value (null if there is none) and returns the new one; returning the same value writes
 * nothing. It is called again after a conflict or a lost reply, so it must have no side effects.
 */
export const editDocument = async (
  session: Session,
  name: string,
  decide: (before: string | null) => string | null,
): Promise<void> => {
  const { documents } = session.store
  await untilWritten(name, () =>
    withPatience(session, async () => {
      const document = await documents.get(name)
      const after = decide(document?.value ?? null)
      if (after === (document?.value ?? null)) return true
      if (after === null) return documents.delete(name, document!.version)
      return (await documents.put(name, after, document?.version ?? 0)) !== null
    }),
  )
}

/** Repeats `attempt` until it returns true. Losing every time to other processes means that something is wrong. */
export const untilWritten = async (name: string, attempt: () => Promise<boolean>): Promise<void> => {
  for (let tries = 0; tries < TRIES; tries++) if (await attempt()) return
  throw new HoldfastError('STORE_CONFLICT', `${name} changed during each of ${TRIES} tries`, { name })
}

/** Like `put`; after a conflict or a lost reply it returns the document that is stored now. */
export const putDocument = async (session: Session, document: Document, value: string): Promise<Document | null> => {
  const { documents } = session.store
  const { name } = document
  const version = await withPatience(session, () => documents.put(name, value, document.version))
  return version === null ? withPatience(session, () => documents.get(name)) : { name, value, version }
}
