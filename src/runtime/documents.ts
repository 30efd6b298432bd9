/** The one way to change a document: read it, decide, and write unless another process wrote first. */
import { HoldfastError } from '../core/errors.ts'
import type { Document } from '../store/store.ts'
import { withPatience } from './patience.ts'
import type { Session } from './session.ts'

const TRIES = 20

/**
 * `decide` gets the value that is there (null: none) and returns the value that should be there; the same value leaves the
 * document alone. It is called again after a conflict or a lost reply, so it must not count its calls.
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

/** Repeats `attempt` until it is true. Another process cannot win every time, unless something is wrong. */
export const untilWritten = async (name: string, attempt: () => Promise<boolean>): Promise<void> => {
  for (let tries = 0; tries < TRIES; tries++) if (await attempt()) return
  throw new HoldfastError('STORE_CONFLICT', `${name} changed under every one of ${TRIES} tries`, { name })
}

/** As `put` answers after a lost reply or a conflict: the document that is there now. */
export const putDocument = async (session: Session, document: Document, value: string): Promise<Document | null> => {
  const { documents } = session.store
  const { name } = document
  const version = await withPatience(session, () => documents.put(name, value, document.version))
  return version === null ? withPatience(session, () => documents.get(name)) : { name, value, version }
}
