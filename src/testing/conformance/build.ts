/** Helpers for the cases: builds tasks with the core, makes claim requests, compares records field by field. */
import assert from 'node:assert/strict'
import type { KeyRecord } from '../../core/idempotency.ts'
import { newSubmission } from '../../core/submission.ts'
import { applyChange, type Change, type Instant, type TaskRecord } from '../../core/task.ts'
import type { ClaimRequest, ClaimResult, Insertion, Store } from '../../store/store.ts'
import { plain } from '../model.ts'

/** The start time of most cases. */
export const NOW: Instant = 1_000
export const LEASE_TTL = 500

/** Ids that sort like their numbers. */
export const idOf = (n: number): string => `01900000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`

export const task = (n: number, fields: Partial<TaskRecord> = {}): TaskRecord => {
  const facts = { now: fields.createdAt ?? NOW, id: idOf(n), op: `submit-${n}`, by: 'client' }
  const { task: fresh } = newSubmission(fields.type ?? 'email', { text: '{}', encoding: 'json' }, {}, facts)
  return { ...fresh, ...fields }
}

/** A task under an idempotency key that lives for an hour and as long as the task, unless `life` says otherwise. */
export const keyed = (
  n: number,
  key: string,
  life: Partial<KeyRecord> = {},
): Insertion & { readonly key: KeyRecord } => ({
  task: task(n, { idempotencyKey: key }),
  key: { key, taskId: idOf(n), hash: `hash-${n}`, expiresAt: NOW + 3_600_000, exact: false, ...life },
})

export type Decision = (task: TaskRecord) => Change | null

/** The record after these moves, computed by the machine alone. */
export const moved = (start: TaskRecord, ...decisions: readonly Decision[]): TaskRecord =>
  decisions.reduce((record, decide) => applyChange(record, decide(record)!), start)

let looks = 0

/** Every claim has its own op, like every call of the runtime. */
export const want = (fields: Partial<ClaimRequest> = {}): ClaimRequest => ({
  queue: 'default',
  types: null,
  limit: 10,
  workerId: 'worker-1',
  op: `look-${++looks}`,
  leaseTtl: LEASE_TTL,
  dueLimit: 10,
  now: NOW,
  ...fields,
})

export const insert = async (store: Store, ...tasks: readonly TaskRecord[]): Promise<void> => {
  const inserted = await store.insert(
    tasks.map((record) => ({ task: record })),
    { now: NOW },
  )
  assert.deepEqual(
    inserted.map(({ outcome }) => outcome),
    tasks.map(() => 'created'),
  )
}

/** Claims with these options and expects exactly one task. */
export const claimOne = async (store: Store, fields: Partial<ClaimRequest> = {}): Promise<TaskRecord> => {
  const { leased } = await store.claim(want(fields))
  assert.equal(leased.length, 1, 'the look should lease one task')
  return leased[0]!
}

export const stored = async (store: Store, id: string): Promise<TaskRecord> => {
  const [record] = await store.get([id])
  assert.ok(record, `task ${id} should be there`)
  return record
}

export const withoutHistory = (record: TaskRecord): TaskRecord => ({ ...plain(record), history: [], journal: [] })

export const same = (actual: TaskRecord | null | undefined, expected: TaskRecord): void => {
  assert.ok(actual, `task ${expected.id} should be there`)
  assert.deepEqual(plain(actual), plain(expected))
}

/** Decides a change on the stored record, writes it, and compares the stored result with the machine's. */
export const commitAndCompare = async (store: Store, id: string, decide: Decision): Promise<TaskRecord> => {
  const before = await stored(store, id)
  const change = decide(before)
  assert.ok(change, 'the machine should have something to write')
  assert.deepEqual(await store.commit([change]), ['written'])
  const after = await stored(store, id)
  same(after, applyChange(before, change))
  return after
}

export const idsOf = (tasks: readonly TaskRecord[]): string[] => tasks.map(({ id }) => id)

export const ids = (...numbers: readonly number[]): string[] => numbers.map(idOf)

export const leasedIds = async (store: Store, fields: Partial<ClaimRequest> = {}): Promise<string[]> =>
  idsOf((await store.claim(want(fields))).leased)

export const lookOnly = (store: Store, fields: Partial<ClaimRequest> = {}): Promise<ClaimResult> =>
  store.claim(want({ limit: 0, ...fields }))
