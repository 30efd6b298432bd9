/** What must hold of the keys at every moment, no matter which process died between which two writes. */
import { isTerminal } from '../../src/core/task.ts'
import { ENDED, identityOf, parseSegment } from '../../src/store/kv/ended/segment-names.ts'
import { decodeTask } from '../../src/store/kv/records/bodies.ts'
import { hintsIn } from '../../src/store/kv/records/bundle-names.ts'
import { parseHint } from '../../src/store/kv/records/hint-names.ts'
import { keyKey, READY, SWEEP, TASKS } from '../../src/store/kv/records/names.ts'
import type { KeyValueMap } from './places/memory-key-value.ts'

/** By status, id and revision: how often each ended task was added to the index, minus how often it was removed. */
const indexed = ({ entries }: KeyValueMap): Map<string, number> => {
  const net = new Map<string, number>()
  for (const [key, { value }] of entries) {
    if (!key.startsWith(ENDED)) continue
    const { kind, status } = parseSegment(key)!
    const rows = (JSON.parse(value) as { entries: [string, number][] }).entries
    for (const [id, revision] of rows) {
      const name = `${status} ${id} ${revision}`
      net.set(name, (net.get(name) ?? 0) + (kind === 'removed' ? -1 : 1))
    }
  }
  return net
}

/** One line for each violation. */
export const violations = (map: KeyValueMap): string[] => {
  const { entries } = map
  const inIndex = indexed(map)
  const named = new Set<string>()
  const broken: string[] = []
  const byKey = new Map<string, string[]>()
  const hints = new Set(
    [...entries.keys()].filter((key) => key.startsWith(READY)).flatMap((key) => hintsIn(key).map((one) => one.key)),
  )
  for (const hint of hints) named.add(parseHint(hint)!.id)
  for (const [key, { value }] of entries) {
    if (!key.startsWith(TASKS)) continue
    const body = decodeTask(key, value)
    if (!('task' in body)) continue
    const { task, hint, largeValues } = body
    if (task.idempotencyKey !== null)
      byKey.set(task.idempotencyKey, [...(byKey.get(task.idempotencyKey) ?? []), task.id])
    for (const large of Object.values(largeValues))
      if (!entries.has(large.key)) broken.push(`${task.id} has lost a large value`)
    if (isTerminal(task.status)) {
      if (hint !== null) broken.push(`${task.id} has ended and still names a hint`)
      if ((inIndex.get(`${task.status} ${identityOf(task)}`) ?? 0) < 1 && !named.has(task.id))
        broken.push(`${task.id} is ${task.status}, is not in the index and has no hint`)
      continue
    }
    const wanted = Math.min(task.availableAt, task.expiresAt ?? task.availableAt)
    if (hint === null || !hints.has(hint)) broken.push(`${task.id} is ${task.status} and no claim will find it`)
    else if (parseHint(hint)!.availableAt > wanted) broken.push(`${task.id} will be found too late`)
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
    const isTombstone = key.startsWith(TASKS) && !('task' in decodeTask(key, value))
    return isTombstone || key.startsWith(READY) || key.startsWith(SWEEP) ? [key] : []
  })
