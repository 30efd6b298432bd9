/** Work on the same key runs one after the other, in the order in which it came. */
export class InTurn {
  /** The end of the last work on each key that has any. */
  readonly #last = new Map<string, Promise<void>>()

  run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key)
    const mine = before === undefined ? work() : before.then(work)
    const end = (): void => this.#ended(key, ended)
    const ended: Promise<void> = mine.then(end, end)
    this.#last.set(key, ended)
    return mine
  }

  #ended(key: string, ended: Promise<void>): void {
    if (this.#last.get(key) === ended) this.#last.delete(key)
  }
}
