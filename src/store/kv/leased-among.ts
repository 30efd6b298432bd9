/** Which of these tasks a claim has leased: for a keeper that was told of each before its lease was written. */

import type { Store } from '../store.ts'
import type { LeaseName } from '../threads/given-back.ts'

export const leasedAmong = async (
  store: Pick<Store, 'get'>,
  op: string,
  ids: readonly string[],
): Promise<readonly LeaseName[]> => {
  const tasks = await store.get(ids)
  return tasks.flatMap((task) => {
    const token = task?.lease?.token
    return token?.startsWith(`${op}.`) ? [{ id: task!.id, token }] : []
  })
}
