/** The limits and paused groups of a queue, as a move or an import brings them. */
import { FLOW } from '../../core/document-names.ts'
import { mergedFlow, type QueueFlow, readFlow, writeFlow } from '../../core/queue-flow.ts'
import { editDocument } from '../documents.ts'
import type { Session } from '../session.ts'

export const joinFlow = (session: Session, queue: string, coming: QueueFlow): Promise<void> =>
  editDocument(session, FLOW + queue, (text) => writeFlow(mergedFlow(readFlow(text), coming, session.time.now())))
