/** Idempotency keys as they are kept: each holds what it stands for, so that anyone can finish an insert whose writer died. */
import type { KeyRecord } from '../../core/idempotency.ts'
import type { Instant, TaskRecord } from '../../core/task.ts'
import { type Asides, decodeKey, encodeKey, type KeyBody, newNonce } from './bodies.ts'
import type { Mark } from './key-value.ts'
import { graveKey, keyKey } from './names.ts'
import type { SteadyKeyValue } from './steady.ts'

export interface KeptKey extends KeyBody {
  readonly mark: Mark
}

export class Keys {
  readonly #kv: SteadyKeyValue

  constructor(kv: SteadyKeyValue) {
    this.#kv = kv
  }

  async read(key: string): Promise<KeptKey | null> {
    const entry = await this.#kv.get(keyKey(key))
    return entry === null ? null : { ...decodeKey(keyKey(key), entry.value), mark: entry.mark }
  }

  /** Stands for this task from now on. null: it, or (given `before`) something newer, is there already. */
  async stand(
    record: KeyRecord,
    made: { readonly task: TaskRecord; readonly asides: Asides },
    before: KeptKey | null,
  ): Promise<KeptKey | null> {
    return this.#put({ birth: newNonce(), state: 'standing', record, made, sealedAt: null }, before)
  }

  /** Its task is gone. The grave sees to it that the key goes too, when its time is over. */
  async end(key: KeptKey, state: 'removed' | 'void', now: Instant): Promise<KeptKey | null> {
    const { record } = key
    const at = state === 'void' ? now : Math.max(now, record.expiresAt)
    await this.#kv.create(graveKey(at, keyKey(record.key)), '')
    return this.#put({ ...key, state, made: null }, key)
  }

  /** A key that comes without its task. */
  async outlive(record: KeyRecord, before: KeptKey | null, now: Instant): Promise<KeptKey | null> {
    await this.#kv.create(graveKey(Math.max(now, record.expiresAt), keyKey(record.key)), '')
    return this.#put({ birth: newNonce(), state: 'removed', record, made: null, sealedAt: null }, before)
  }

  async seal(key: KeptKey, sealedAt: Instant): Promise<KeptKey | null> {
    return this.#put({ ...key, made: null, sealedAt }, key)
  }

  async #put(body: KeyBody, before: KeptKey | null): Promise<KeptKey | null> {
    const { birth, state, record, made, sealedAt } = body
    const value = encodeKey({ birth, state, record, made, sealedAt })
    const path = keyKey(record.key)
    const mark = before === null ? await this.#kv.create(path, value) : await this.#kv.update(path, value, before.mark)
    return mark === null ? null : { birth, state, record, made, sealedAt, mark }
  }
}
