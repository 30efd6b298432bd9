/** Takes away what was removed a while ago: sealed first, so that of everybody who wants to write there only one can. */
import { keyIsLive } from '../../core/idempotency.ts'
import type { Instant } from '../../core/task.ts'
import { decodeKey, encodeBuried } from './bodies.ts'
import { endKeyOf } from './commit.ts'
import type { Discards } from './discards.ts'
import type { Keys } from './keys.ts'
import { GRAVES, idOfTaskKey, parseGrave, TASKS } from './names.ts'
import type { SteadyKeyValue } from './steady.ts'
import { isLiving, SEAL_LIFE, SEAL_OVER, type Tasks } from './tasks.ts'

const MOST = 1_000

export class Sweeper {
  readonly #kv: SteadyKeyValue
  readonly #tasks: Tasks
  readonly #keys: Keys
  readonly #discards: Discards

  constructor(kv: SteadyKeyValue, tasks: Tasks, keys: Keys, discards: Discards) {
    this.#kv = kv
    this.#tasks = tasks
    this.#keys = keys
    this.#discards = discards
  }

  /** True: there may be more. */
  async sweep(now: Instant): Promise<boolean> {
    const graves = (await this.#kv.list(GRAVES, { limit: MOST })).map(parseGrave).filter(({ at }) => at <= now)
    await Promise.all(
      graves.map(async ({ key, of }) => {
        const isDone = of.startsWith(TASKS) ? await this.#sweepTask(of, now) : await this.#sweepKey(of, now)
        if (isDone) this.#discards.add([key])
      }),
    )
    await this.#discards.settled()
    return graves.length === MOST
  }

  async #sweepTask(path: string, now: Instant): Promise<boolean> {
    const id = idOfTaskKey(path)
    const buried = await this.#tasks.read(id)
    // Gone already, or another task has the id now.
    if (buried === null || isLiving(buried)) return true
    if (buried.sealedAt !== null && now - buried.sealedAt <= SEAL_OVER) return false
    const { idempotencyKey, endKey } = buried
    if (idempotencyKey !== null) await endKeyOf(this.#keys, id, { idempotencyKey, endKey }, now)
    const { mark, ...body } = buried
    return this.#takeAway(path, encodeBuried({ ...body, sequence: body.sequence + 1, sealedAt: now }), mark)
  }

  async #sweepKey(path: string, now: Instant): Promise<boolean> {
    const entry = await this.#kv.get(path)
    if (entry === null) return true
    const body = decodeKey(path, entry.value)
    if (body.state === 'standing') return true
    if (body.state === 'removed' && keyIsLive(body.record, false, now)) return false
    if (body.sealedAt !== null && now - body.sealedAt <= SEAL_OVER) return false
    const begun = performance.now()
    if ((await this.#keys.seal({ ...body, mark: entry.mark }, now)) === null) return false
    return this.#deleteSoon(path, begun)
  }

  async #takeAway(path: string, sealed: string, mark: string): Promise<boolean> {
    const begun = performance.now()
    if ((await this.#kv.update(path, sealed, mark)) === null) return false
    return this.#deleteSoon(path, begun)
  }

  async #deleteSoon(path: string, begun: number): Promise<boolean> {
    if (performance.now() - begun > SEAL_LIFE) return false
    await this.#kv.delete([path])
    return true
  }
}
