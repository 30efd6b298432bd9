/** Interesting states that a run of seeds must have reached. A simulation that does not reach the code proves nothing about it. */
export class Marks {
  readonly hits = new Map<string, number>()

  hit(mark: string): void {
    this.hits.set(mark, (this.hits.get(mark) ?? 0) + 1)
  }
}
