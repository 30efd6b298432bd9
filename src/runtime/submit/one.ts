/** One task in one call. */
import { DEFAULTS, type SubmitOptions } from '../../core/submission.ts'
import type { Task } from '../../core/task-view.ts'
import { asDefinition, type Transaction, type TypeOrDefinition, withDefaults } from '../definition.ts'
import type { Session } from '../session.ts'
import type { Submitter } from './submitter.ts'

export interface Submission {
  readonly type: TypeOrDefinition
  readonly input: unknown
  readonly options: SubmitOptions
  readonly tx: Transaction | undefined
}

export const submitOne = (
  { tracing }: Session,
  submitter: Submitter,
  { type, input, options, tx }: Submission,
): Promise<Task> => {
  const definition = asDefinition(type)
  const wanted = withDefaults(definition, options)
  const put = (chosen: SubmitOptions): Promise<Task> => {
    const item = { definition, input, options: chosen }
    return tx === undefined ? submitter.one(item) : submitter.inTransaction(item, tx)
  }
  if (tracing === null) return put(wanted)
  const what = { type: definition.type, queue: wanted.queue ?? DEFAULTS.queue }
  return tracing.submit(what, (tagged) => put(tagged(wanted)))
}
