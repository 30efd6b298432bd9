/** Amends a pending task by its id. */
import { type AmendOptions, amend, amendment } from '../../core/amend.ts'
import { Task } from '../../core/observe/task-view.ts'
import { checkId } from '../../core/submission.ts'
import { encodePayload } from '../../core/values/payload.ts'
import { checkSchema, mustBeOf, type TaskDefinition } from '../definition.ts'
import { actorOf, newOp, type Session } from '../session.ts'
import { settleById } from './settle.ts'

/** With a definition, the task must have its type, and a new input must pass its schema. */
export const amendById = async (
  session: Session,
  definition: TaskDefinition | null,
  id: string,
  options: AmendOptions,
): Promise<Task> => {
  const isNewInput = options.input !== undefined
  if (isNewInput && definition !== null) await checkSchema(definition.input, options.input, 'input', 'INVALID_TASK')
  const input = isNewInput ? encodePayload(options.input, 'input', session.maxPayload) : null
  const set = amendment(options, input, session.time.now())
  const op = newOp()
  return new Task(
    await settleById(session, checkId(id), {
      op,
      moves: ['amend'],
      decide: (task) => {
        mustBeOf(definition, task)
        return amend(task, actorOf(session, op), set)
      },
    }),
  )
}
