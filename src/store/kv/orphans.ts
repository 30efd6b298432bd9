/** Idempotency keys that outlived their task: read one by one, for whoever moves a store somewhere else. */
import { type KeyRecord, keyIsLive } from '../../core/idempotency.ts'
import type { Instant } from '../../core/task.ts'
import type { Orphans } from '../store.ts'
import { decodeKey } from './bodies.ts'
import { inTurn } from './in-turn.ts'
import type { KeptKey, Keys } from './keys.ts'
import { KEYS, keyKey } from './names.ts'
import type { SteadyKeyValue } from './steady.ts'
import { isLiving, pastSeal, type Tasks } from './tasks.ts'

const PAGE = 200
const TRIES = 20

export class KvOrphans implements Orphans {
  readonly #kv: SteadyKeyValue
  readonly #tasks: Tasks
  readonly #keys: Keys
  readonly #now: () => Promise<Instant>

  constructor(kv: SteadyKeyValue, tasks: Tasks, keys: Keys, now: () => Promise<Instant>) {
    this.#kv = kv
    this.#tasks = tasks
    this.#keys = keys
    this.#now = now
  }

  async list({ limit, after }: { readonly limit: number; readonly after?: string }): Promise<KeyRecord[]> {
    const found: KeyRecord[] = []
    for (let from = after === undefined ? undefined : keyKey(after); found.length < limit; ) {
      const paths = await this.#kv.list(KEYS, from === undefined ? { limit: PAGE } : { limit: PAGE, after: from })
      for (const record of await Promise.all(paths.map((path) => this.#orphanAt(path))))
        if (record !== null && found.length < limit) found.push(record)
      if (paths.length < PAGE) break
      from = paths.at(-1)!
    }
    return found
  }

  async #orphanAt(path: string): Promise<KeyRecord | null> {
    const entry = await this.#kv.get(path)
    if (entry === null) return null
    const { state, record, sealedAt } = decodeKey(path, entry.value)
    if (state === 'void' || sealedAt !== null) return null
    const kept = await this.#tasks.read(record.taskId)
    if (isLiving(kept)) return null
    const isRemoved = state === 'removed' || (kept !== null && !kept.isEmpty && !kept.endKey)
    return isRemoved ? record : null
  }

  put(records: readonly KeyRecord[], now: Instant | null): Promise<boolean[]> {
    return inTurn(
      records,
      ({ key }) => [key],
      async (record) => this.#putOne(record, now ?? (await this.#now())),
    )
  }

  async #putOne(record: KeyRecord, now: Instant): Promise<boolean> {
    for (let tries = 0; tries < TRIES; tries++) {
      const found = await pastSeal(() => this.#keys.read(record.key), this.#now)
      if (found !== null && (await this.#isLive(found, now))) return false
      if ((await this.#keys.outlive(record, found, now)) !== null) return true
    }
    return false
  }

  async #isLive({ state, record }: KeptKey, now: Instant): Promise<boolean> {
    if (state === 'void') return false
    return keyIsLive(record, isLiving(await this.#tasks.read(record.taskId)), now)
  }
}
