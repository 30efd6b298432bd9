/** What must hold of the keys at every moment, whoever died between which two writes. */
import { isTerminal } from '../../src/core/task.ts'
import { decodeTask } from '../../src/store/kv/bodies.ts'
import { GRAVES, hintsIn, keyKey, parseHint, READY, TASKS } from '../../src/store/kv/names.ts'
import type { KeyValueMap } from './memory-key-value.ts'

/** One line for each violation. */
export const violations = ({ entries }: KeyValueMap): string[] => {
  const broken: string[] = []
  const byKey = new Map<string, string[]>()
  const hints = new Set(
    [...entries.keys()].filter((key) => key.startsWith(READY)).flatMap((key) => hintsIn(key).map((one) => one.key)),
  )
  for (const [key, { value }] of entries) {
    if (!key.startsWith(TASKS)) continue
    const body = decodeTask(key, value)
    if (!('task' in body)) continue
    const { task, hint, asides } = body
    if (task.idempotencyKey !== null)
      byKey.set(task.idempotencyKey, [...(byKey.get(task.idempotencyKey) ?? []), task.id])
    for (const aside of Object.values(asides))
      if (!entries.has(aside.key)) broken.push(`${task.id} has lost a long text`)
    if (isTerminal(task.status)) {
      if (hint !== null) broken.push(`${task.id} has ended and still names a hint`)
      continue
    }
    const wanted = Math.min(task.availableAt, task.expiresAt ?? task.availableAt)
    if (hint === null || !hints.has(hint)) broken.push(`${task.id} is ${task.status} and nobody will find it`)
    else if (parseHint(hint)!.at > wanted) broken.push(`${task.id} will be found too late`)
  }
  for (const [key, ids] of byKey) {
    if (ids.length > 1) broken.push(`the key ${key} has ${ids.length} tasks`)
    const kept = entries.get(keyKey(key))
    if (kept === undefined) broken.push(`${ids[0]} has a key that does not know it`)
  }
  return broken
}

/** What should be gone once everything has ended and been swept. */
export const leftovers = ({ entries }: KeyValueMap): string[] =>
  [...entries].flatMap(([key, { value }]) => {
    const isBuried = key.startsWith(TASKS) && !('task' in decodeTask(key, value))
    return isBuried || key.startsWith(READY) || key.startsWith(GRAVES) ? [key] : []
  })
