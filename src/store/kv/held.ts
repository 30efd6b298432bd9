/** Tasks as this process last saw them, so that whoever just read one can write it without reading again. Bounded. */
import type { Living } from './tasks.ts'

const MOST_TASKS = 5_000
/** In characters. */
const MOST_TEXT = 32 * 1_048_576

const sizeOf = ({ task: { input, output, progress, history } }: Living): number =>
  1_000 + input.length + (output?.length ?? 0) + (progress?.length ?? 0) + history.length * 200

export class Held {
  readonly #tasks = new Map<string, Living>()
  #size = 0

  get(id: string): Living | undefined {
    return this.#tasks.get(id)
  }

  set(living: Living): void {
    const { id } = living.task
    this.delete(id)
    this.#tasks.set(id, living)
    this.#size += sizeOf(living)
    for (const oldest of this.#tasks.keys()) {
      if (this.#tasks.size <= MOST_TASKS && this.#size <= MOST_TEXT) break
      this.delete(oldest)
    }
  }

  delete(id: string): void {
    const held = this.#tasks.get(id)
    if (held === undefined) return
    this.#size -= sizeOf(held)
    this.#tasks.delete(id)
  }
}
