/** Many tasks in one call, of one or of several types. */
import { HoldfastError } from '../../core/errors.ts'
import { mergeOptions } from '../../core/merge-options.ts'
import { DEFAULTS, type SubmitOptions } from '../../core/submission.ts'
import { asDefinition, type InputFor, type TypeOrDefinition, withDefaults } from '../definition.ts'
import type { Session } from '../session.ts'
import type { Tagging } from '../telemetry/tracing.ts'
import type { SubmitResult, Submitter } from './submitter.ts'

/** One task of `submitMany`: its type, its input and its options. */
export interface SubmitManyItem<T extends TypeOrDefinition = TypeOrDefinition> extends SubmitOptions {
  readonly type: T
  readonly input: InputFor<T>
}

/** Each item has its own result, in order. `shared` options apply to every item that does not set them. */
export const submitEach = async (
  { tracing }: Session,
  submitter: Submitter,
  items: readonly SubmitManyItem[],
  shared: SubmitOptions,
): Promise<SubmitResult[]> => {
  for (const name of ['id', 'idempotencyKey', 'coalesce'] as const) {
    if (shared[name] === undefined) continue
    throw new HoldfastError('INVALID_OPTION', `${name} belongs to one task: give it on the item`, { field: 'shared' })
  }
  const put = (tagged: Tagging): Promise<SubmitResult[]> =>
    submitter.many(
      items.map(({ type, input, ...own }) => {
        const definition = asDefinition(type)
        return { definition, input, options: tagged(withDefaults(definition, mergeOptions(shared, own))) }
      }),
    )
  if (tracing === null) return put((options) => options)
  return tracing.submit({ type: `${items.length} tasks`, queue: shared.queue ?? DEFAULTS.queue }, put)
}
