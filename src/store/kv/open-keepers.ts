/** The keepers of this process. Each learns of a lease before the lease is written. */
import type { Keeper } from '../store.ts'

export class OpenKeepers {
  readonly #keepers = new Set<Keeper>()

  /** The same keeper. It is told until it is closed. */
  add(keeper: Keeper): Keeper {
    this.#keepers.add(keeper)
    const close = (): void => {
      this.#keepers.delete(keeper)
      keeper.close()
    }
    return { ...keeper, close }
  }

  leasing(op: string, id: string): void {
    for (const keeper of this.#keepers) keeper.leasing?.(op, id)
  }
}
