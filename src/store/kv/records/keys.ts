/** Idempotency keys. Each holds the whole insertion, so that any process can finish an insert whose writer died. */
import type { KeyRecord } from '../../../core/idempotency.ts'
import type { Instant } from '../../../core/task.ts'
import type { Mark } from '../access/key-value.ts'
import type { RetryingKeyValue } from '../access/retrying-key-value.ts'
import { decodeKey, encodeKey, type KeyBody, newNonce, type TaskBody } from './bodies.ts'
import { keyKey, sweepKey } from './names.ts'

const TRIES = 20

export interface StoredKey extends KeyBody {
  readonly mark: Mark
}

export class Keys {
  readonly #kv: RetryingKeyValue

  constructor(kv: RetryingKeyValue) {
    this.#kv = kv
  }

  async read(key: string): Promise<StoredKey | null> {
    const entry = await this.#kv.get(keyKey(key))
    return entry === null ? null : { ...decodeKey(keyKey(key), entry.value), mark: entry.mark }
  }

  /** Stands for this task from now on. null: the key exists, or has changed since `before` was read. */
  activate(
    record: KeyRecord,
    { insertId, ...insertion }: TaskBody & Pick<KeyBody, 'insertId'>,
    before: StoredKey | null,
  ): Promise<StoredKey | null> {
    return this.#put({ insertId, state: 'active', record, insertion, deletingAt: null }, before)
  }

  /** The task is gone. The sweep entry makes sure that the key is deleted when its time is over. */
  async end(key: StoredKey, state: 'detached' | 'void', now: Instant): Promise<StoredKey | null> {
    const { record } = key
    const at = state === 'void' ? now : Math.max(now, record.expiresAt)
    await this.#kv.create(sweepKey(at, keyKey(record.key)), '')
    return this.#put({ ...key, state, insertion: null }, key)
  }

  /** Ends the key of a removed task, unless it stands for another task by now. */
  async endOf(id: string, key: string, state: 'detached' | 'void', now: Instant): Promise<void> {
    for (let tries = 0; tries < TRIES; tries++) {
      const found = await this.read(key)
      if (found === null || found.record.taskId !== id || found.state === 'void' || found.state === state) return
      if ((await this.end(found, state, now)) !== null) return
    }
  }

  /** A key that is imported without its task. */
  async createDetached(record: KeyRecord, before: StoredKey | null, now: Instant): Promise<StoredKey | null> {
    await this.#kv.create(sweepKey(Math.max(now, record.expiresAt), keyKey(record.key)), '')
    return this.#put({ insertId: newNonce(), state: 'detached', record, insertion: null, deletingAt: null }, before)
  }

  markDeleting(key: StoredKey, deletingAt: Instant): Promise<StoredKey | null> {
    return this.#put({ ...key, insertion: null, deletingAt }, key)
  }

  async #put(body: KeyBody, before: StoredKey | null): Promise<StoredKey | null> {
    const { insertId, state, record, insertion, deletingAt } = body
    const value = encodeKey({ insertId, state, record, insertion, deletingAt })
    const mark = await this.#kv.put(keyKey(record.key), value, before?.mark ?? null)
    return mark === null ? null : { insertId, state, record, insertion, deletingAt, mark }
  }
}
