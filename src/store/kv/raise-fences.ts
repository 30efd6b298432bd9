/** Raises the fences of a store that was restored from a backup, as far as its tasks may run again. */
import type { RetryingKeyValue } from './access/retrying-key-value.ts'
import type { Committer } from './committer.ts'
import { idOfTaskKey, TASKS } from './records/names.ts'

/** Returns the number of tasks. Repeated after a crash it raises some of them twice, which is harmless. */
export const raiseFences = async (kv: RetryingKeyValue, committer: Committer): Promise<number> => {
  let count = 0
  for await (const keys of kv.pages(TASKS)) {
    const raised = await Promise.all(keys.map((key) => committer.raiseFence(idOfTaskKey(key))))
    count += raised.filter(Boolean).length
  }
  return count
}
