/** Tasks as this process last saw them, so that it can write one without reading it again. Bounded. */
import type { LiveTask } from './tasks.ts'

const MOST_TASKS = 5_000
/** In characters. */
const MOST_TEXT = 32 * 1_048_576

const sizeOf = ({ task: { input, output, progress, history, journal } }: LiveTask): number =>
  1_000 +
  input.length +
  (output?.length ?? 0) +
  (progress?.length ?? 0) +
  history.length * 200 +
  journal.reduce((sum, { value }) => sum + 150 + (value?.length ?? 0), 0)

export class TaskCache {
  readonly #tasks = new Map<string, LiveTask>()
  #size = 0

  get(id: string): LiveTask | undefined {
    return this.#tasks.get(id)
  }

  set(live: LiveTask): void {
    const { id } = live.task
    this.delete(id)
    this.#tasks.set(id, live)
    this.#size += sizeOf(live)
    for (const oldest of this.#tasks.keys()) {
      if (this.#tasks.size <= MOST_TASKS && this.#size <= MOST_TEXT) break
      this.delete(oldest)
    }
  }

  delete(id: string): void {
    const cached = this.#tasks.get(id)
    if (cached === undefined) return
    this.#size -= sizeOf(cached)
    this.#tasks.delete(id)
  }
}
