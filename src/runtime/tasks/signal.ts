/** Sends a signal to a task by its id. */

import { Task } from '../../core/observe/task-view.ts'
import { checkStepName } from '../../core/steps/journal.ts'
import { signal } from '../../core/steps/steps.ts'
import { checkId } from '../../core/submission.ts'
import { checkOptionNames } from '../../core/values/option-names.ts'
import { encodePayload } from '../../core/values/payload.ts'
import { actorOf, newOp, type Session } from '../session.ts'
import { settleById } from './settle.ts'

export interface SignalOptions {
  /** Names this signal: a repeat with the same id is kept once. Default: a new one for each call. */
  readonly signalId?: string
}

/** Many may signal one task at once. On a store where each write is a request to a busy server, 200 of them took longer than 15 s. */
const PATIENCE = 60_000

export const signalById = async (
  session: Session,
  id: string,
  name: string,
  value: unknown,
  options: SignalOptions,
): Promise<Task> => {
  checkOptionNames(options, ['signalId'], 'signal')
  const op = newOp()
  const sent = {
    id: options.signalId === undefined ? op : checkStepName(options.signalId, 'signalId'),
    name: checkStepName(name, 'name'),
    value: value === undefined ? null : encodePayload(value, 'value', session.maxPayload, 'INVALID_OPTION'),
  }
  return new Task(
    await settleById(session, checkId(id), {
      op,
      // Recognised by its id, in the journal.
      moves: [],
      patience: PATIENCE,
      decide: (task) => signal(task, sent, actorOf(session, op), session.maxPayload),
    }),
  )
}
