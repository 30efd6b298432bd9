/** Idempotency keys that outlived their task, for a transfer to another store. */
import { type KeyRecord, keyIsLive } from '../../core/idempotency.ts'
import type { Instant } from '../../core/task.ts'
import type { DetachedKeys } from '../store.ts'
import type { RetryingKeyValue } from './access/retrying-key-value.ts'
import { serializeByKey } from './access/serialize-by-key.ts'
import { decodeKey } from './records/bodies.ts'
import { readPastDeletion } from './records/deletion-mark.ts'
import type { Keys, StoredKey } from './records/keys.ts'
import { KEYS, keyKey } from './records/names.ts'
import { isLive, type Tasks } from './records/tasks.ts'

const PAGE = 200
const TRIES = 20

export class KvDetachedKeys implements DetachedKeys {
  readonly #kv: RetryingKeyValue
  readonly #tasks: Tasks
  readonly #keys: Keys
  readonly #now: () => Promise<Instant>

  constructor(kv: RetryingKeyValue, tasks: Tasks, keys: Keys, now: () => Promise<Instant>) {
    this.#kv = kv
    this.#tasks = tasks
    this.#keys = keys
    this.#now = now
  }

  async list({ limit, after }: { readonly limit: number; readonly after?: string }): Promise<KeyRecord[]> {
    const found: KeyRecord[] = []
    for (let from = after === undefined ? undefined : keyKey(after); found.length < limit; ) {
      const paths = await this.#kv.list(KEYS, from === undefined ? { limit: PAGE } : { limit: PAGE, after: from })
      for (const record of await Promise.all(paths.map((path) => this.#detachedAt(path))))
        if (record !== null && found.length < limit) found.push(record)
      if (paths.length < PAGE) break
      from = paths.at(-1)!
    }
    return found
  }

  async #detachedAt(path: string): Promise<KeyRecord | null> {
    const entry = await this.#kv.get(path)
    if (entry === null) return null
    const { state, record, deletingAt } = decodeKey(path, entry.value)
    if (state === 'void' || deletingAt !== null) return null
    const stored = await this.#tasks.read(record.taskId)
    if (isLive(stored)) return null
    const isDetached = state === 'detached' || (stored !== null && !stored.isEmpty && !stored.endKey)
    return isDetached ? record : null
  }

  put(records: readonly KeyRecord[], now: Instant | null): Promise<boolean[]> {
    return serializeByKey(
      records,
      ({ key }) => [key],
      async (record) => this.#putOne(record, now ?? (await this.#now())),
    )
  }

  async #putOne(record: KeyRecord, now: Instant): Promise<boolean> {
    for (let tries = 0; tries < TRIES; tries++) {
      const found = await readPastDeletion(() => this.#keys.read(record.key), this.#now)
      if (found !== null && (await this.#isLive(found, now))) return false
      if ((await this.#keys.createDetached(record, found, now)) !== null) return true
    }
    return false
  }

  async #isLive({ state, record }: StoredKey, now: Instant): Promise<boolean> {
    if (state === 'void') return false
    return keyIsLive(record, isLive(await this.#tasks.read(record.taskId)), now)
  }
}
