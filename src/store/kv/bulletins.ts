/**
 * News in passing: whoever changes a pause or a schedule leaves a key at the beginning of every queue's hints, where each look
 * sees it. While no look has seen another one, what was read of them before still holds, and need not be read again.
 */
import { newNonce } from './bodies.ts'
import { queuePrefix } from './names.ts'
import type { SteadyKeyValue } from './steady.ts'

/** Sorts before every hint. */
const SIGN = '!'
/** Nobody has looked for so long: then nobody knows. */
const LOOK_LIFE = 5_000
/** However quiet it is: a writer may have died before it left its key. */
const NEWS_LIFE = 60_000
const MOST_AT_ONCE = 20

interface Seen {
  readonly bulletin: string
  readonly at: number
}

/** What was known when something was read. */
export interface Edition {
  readonly at: number
  readonly bulletins: ReadonlyMap<string, string>
}

export class Bulletins {
  readonly #kv: SteadyKeyValue
  /** By the queue's prefix. */
  readonly #seen = new Map<string, Seen>()

  readonly #mono: () => number

  constructor(kv: SteadyKeyValue, mono: () => number) {
    this.#kv = kv
    this.#mono = mono
  }

  /** The keys with which a list of a queue's hints began. */
  listed(prefix: string, keys: readonly string[]): void {
    const [first = ''] = keys
    this.#seen.set(prefix, { bulletin: first.startsWith(prefix + SIGN) ? first : '', at: this.#mono() })
  }

  edition(): Edition {
    return {
      at: this.#mono(),
      bulletins: new Map([...this.#seen].map(([prefix, { bulletin }]) => [prefix, bulletin])),
    }
  }

  /** Whether what was read at that edition still holds. */
  holds({ at, bulletins }: Edition): boolean {
    const now = this.#mono()
    if (now - at > NEWS_LIFE) return false
    let looks = 0
    for (const [prefix, seen] of this.#seen) {
      if (now - seen.at > LOOK_LIFE) continue
      looks++
      if (bulletins.get(prefix) !== seen.bulletin) return false
    }
    return looks > 0
  }

  /** Something has changed: to be seen by all that look at one of these queues. */
  async announce(queues: readonly string[]): Promise<void> {
    await Promise.all(
      queues.map(async (queue) => {
        const prefix = queuePrefix(queue)
        const old = await this.#kv.list(prefix + SIGN, { limit: MOST_AT_ONCE })
        await this.#kv.create(`${prefix}${SIGN}${newNonce()}`, '')
        await this.#kv.delete(old)
      }),
    )
  }
}
