/** The tasks of a store after a busy day, each derived from its number, always the same. */
import { createHash } from 'node:crypto'
import type { HistoryEntry } from '../../src/core/task.ts'
import type { Insertion, TaskRecord } from '../../src/store/store.ts'
import { hash } from '../hash.ts'

export const QUEUES = ['default', 'images', 'mail', 'reports', 'webhooks'] as const
const TYPES = ['resize-image', 'send-mail', 'make-report', 'call-webhook', 'charge-card', 'sync-contact', 'index-page']
/** Few enough that a list of them does not fill a page. */
export const RARE_TYPE = 'yearly-audit'
export const CUSTOMERS = 1_000
const DAY = 86_400_000

const ERRORS: readonly ((n: number) => readonly [name: string, message: string])[] = [
  (n) => ['TimeoutError', `no answer from 10.0.0.${n % 250} within ${1_000 + (n % 7) * 500} ms`],
  (n) => ['HttpError', `503 from https://hooks.example.com/${n}`],
  (n) => ['TypeError', `Cannot read properties of undefined (reading 'item${n % 3}')`],
  () => ['CardDeclined', 'the card was declined'],
  (n) => ['Error', `contact "${n}" has no address`],
]

/** Shares of the whole, in thousandths; the rest is completed. */
const SHARES = { pending: 100, retrying: 20, scheduled: 20, failed: 5, cancelled: 5, expired: 2, archived: 1 } as const
const RUNNING = 50

type Kind = keyof typeof SHARES | 'running' | 'completed'

/** Evenly spread, except for pending tasks, which are among the newest third. */
const kindOf = (n: number, total: number): Kind => {
  if (n >= total - RUNNING) return 'running'
  const dice = hash(n) % 1_000
  const isLate = n >= (total * 2) / 3
  if (isLate && dice < SHARES.pending * 3) return 'pending'
  let from = SHARES.pending * 3
  for (const kind of ['retrying', 'scheduled', 'failed', 'cancelled', 'expired', 'archived'] as const) {
    from += SHARES[kind]
    if (dice >= from - SHARES[kind] && dice < from) return kind
  }
  return 'completed'
}

export const idOf = (n: number, createdAt: number): string => {
  const hex = createdAt.toString(16).padStart(12, '0')
  const tail = `${hash(n + 1)
    .toString(16)
    .padStart(8, '0')}${n.toString(16).padStart(8, '0')}`
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7${tail.slice(0, 3)}-8${tail.slice(3, 6)}-${tail.slice(6, 16).padStart(12, '0')}`
}

export const createdAtOf = (n: number, total: number, now: number): number =>
  Math.floor(now - DAY + (n / total) * (DAY - 1_000))

export const insertionOf = (n: number, total: number, now: number): Insertion => {
  const task = taskOf(n, total, now)
  const key = task.idempotencyKey
  if (key === null) return { task }
  const sum = createHash('sha256').update(key).digest('hex')
  return { task, key: { key, taskId: task.id, hash: sum, expiresAt: now + 7 * DAY, exact: true } }
}

const taskOf = (n: number, total: number, now: number): TaskRecord => {
  const kind = kindOf(n, total)
  const createdAt = createdAtOf(n, total, now)
  const startedAt = createdAt + 20 + (n % 400)
  const endedAt = startedAt + 5 + (n % 900)
  const type = hash(n) % 50_000 === 7 ? RARE_TYPE : TYPES[hash(n + 7) % TYPES.length]!
  const [name, message] = ERRORS[hash(n + 3) % ERRORS.length]!(n)
  const wasRun = kind === 'completed' || kind === 'failed' || kind === 'retrying' || kind === 'archived'
  const status = kind === 'retrying' || kind === 'scheduled' ? 'pending' : kind
  const hasFailed = kind === 'failed' || kind === 'retrying'
  const by = `worker-${n % 10}@host-${n % 3}`
  const token = `op-${n}.${n}`
  const submit: HistoryEntry = { n: 1, at: createdAt, move: 'submit', to: 'pending', by: 'api@host-1', op: `op-${n}` }
  const claim: HistoryEntry = { n: 2, at: startedAt, move: 'claim', to: 'running', by, op: token }
  const end: HistoryEntry = {
    n: wasRun ? 3 : 2,
    at: endedAt,
    move: hasFailed ? 'fail' : wasRun ? 'complete' : kind === 'expired' ? 'expire' : 'cancel',
    to: status,
    by,
    op: token,
    ...(hasFailed && { error: `${name}: ${message}` }),
  }
  const isNew = kind === 'pending' || kind === 'scheduled'
  const history = isNew
    ? [submit]
    : kind === 'running'
      ? [submit, claim]
      : wasRun
        ? [submit, claim, end]
        : [submit, end]
  return {
    id: idOf(n, createdAt),
    queue: QUEUES[hash(n + 5) % QUEUES.length]!,
    type,
    input: JSON.stringify({ n, to: 'someone@example.com', subject: 'Your order is on its way', locale: 'en-GB' }),
    encoding: 'json',
    output: kind === 'completed' ? '{"sent":true}' : null,
    outputEncoding: 'json',
    outputError: null,
    status,
    priority: n % 20 === 0 ? 10 : 0,
    group: null,
    availableAt: kind === 'scheduled' || kind === 'retrying' ? now + 3_600_000 + (hash(n) % DAY) : createdAt,
    expiresAt: kind === 'expired' ? endedAt - 1 : null,
    expiredAt: kind === 'expired' ? endedAt : null,
    idempotencyKey: n % 10 === 0 ? `order-${n}` : null,
    attempts: wasRun || kind === 'running' ? 1 : 0,
    retryCount: kind === 'retrying' ? 1 : 0,
    maxRetries: 3,
    rescheduleCount: 0,
    maxReschedules: null,
    replayCount: 0,
    replayedAs: null,
    replayOf: null,
    retryPolicy: null,
    timeout: null,
    lease:
      kind === 'running'
        ? { token, workerId: by, claimedAt: startedAt, expiresAt: now + 10 * 3_600_000, ttl: 36_000_000 }
        : null,
    cancelRequestedAt: null,
    lastError: hasFailed ? { name, message, at: endedAt, attempt: 1 } : null,
    progress: null,
    createdAt,
    updatedAt: history.at(-1)!.at,
    startedAt: wasRun || kind === 'running' ? startedAt : null,
    completedAt: isNew || kind === 'running' || kind === 'retrying' ? null : endedAt,
    archivedFrom: kind === 'archived' ? 'completed' : null,
    scheduleId: null,
    parked: null,
    generation: 0,
    hasJournal: false,
    journal: [],
    tags: n % 3 === 0 ? { customer: `c${hash(n) % CUSTOMERS}`, region: n % 2 === 0 ? 'eu' : 'us' } : null,
    revision: history.at(-1)!.n,
    history,
  }
}
