/** The limits and paused groups of a queue, as a move or an import brings them. */

import { mergedFlow, type QueueFlow, readFlow, writeFlow } from '../../core/flow/queue-flow.ts'
import { FLOW } from '../../core/storage/document-names.ts'
import { editDocument } from '../documents.ts'
import type { Session } from '../session.ts'

export const joinFlow = (session: Session, queue: string, coming: QueueFlow): Promise<void> =>
  editDocument(session, FLOW + queue, (text) => writeFlow(mergedFlow(readFlow(text), coming, session.time.now())))
