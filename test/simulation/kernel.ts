/** Virtual time: a heap of events, each run to its end before the next one. Nothing else makes time pass. */
import { Random } from '../../src/testing/random.ts'

/** Captured before anything of a simulated process could replace it. */
const { setImmediate } = globalThis

interface Event {
  readonly at: number
  /** Events of the same instant run in a random order. */
  readonly tie: number
  readonly n: number
  run: (() => void) | null
}

export type Cancel = () => void

/** A number made of a seed and a name: each concern draws from its own stream, so leaving out one fault does not reshuffle the others. */
export const seedOf = (seed: number, name: string): number => {
  let hash = 2_166_136_261 ^ seed
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 16_777_619)
  hash = Math.imul(hash ^ (hash >>> 15), 2_246_822_507)
  return (hash ^ (hash >>> 13)) >>> 0
}

export class Kernel {
  readonly seed: number
  /** Milliseconds since the seed began. */
  now = 0
  steps = 0
  readonly #heap: Event[] = []
  readonly #order: Random
  #n = 0

  constructor(seed: number) {
    this.seed = seed
    this.#order = this.random('order')
  }

  random(name: string): Random {
    return new Random(seedOf(this.seed, name))
  }

  /** With a salt, events of the same instant and salt run in the order in which they were set. */
  after(delay: number, run: () => void, salt?: number): Cancel {
    const at = this.now + Math.max(0, delay)
    const tie = salt === undefined ? this.#order.next() : ((Math.imul(at, 0x9e3779b1) ^ salt) >>> 0) / 2 ** 32
    const event: Event = { at, tie, n: ++this.#n, run }
    this.#push(event)
    return () => {
      event.run = null
    }
  }

  sleep(delay: number): Promise<void> {
    return new Promise((done) => this.after(delay, done))
  }

  /** Runs events until `isOver`, or until `end` has passed. Returns false if no event is left before that. */
  async run(end: number, isOver: () => boolean = () => false): Promise<boolean> {
    await drained()
    while (!isOver()) {
      const event = this.#heap[0]
      if (event === undefined) return false
      if (event.at > end) {
        this.now = end
        return true
      }
      this.#pop()
      if (event.run === null) continue
      this.now = event.at
      this.steps++
      const { run } = event
      event.run = null
      run()
      await drained()
    }
    return true
  }

  #push(event: Event): void {
    const heap = this.#heap
    let i = heap.push(event) - 1
    while (i > 0) {
      const parent = (i - 1) >> 1
      if (!isBefore(event, heap[parent]!)) break
      heap[i] = heap[parent]!
      i = parent
    }
    heap[i] = event
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop()!
    if (heap.length === 0) return
    let i = 0
    for (;;) {
      let child = 2 * i + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++
      if (!isBefore(heap[child]!, last)) break
      heap[i] = heap[child]!
      i = child
    }
    heap[i] = last
  }
}

const isBefore = (a: Event, b: Event): boolean =>
  a.at !== b.at ? a.at < b.at : a.tie !== b.tie ? a.tie < b.tie : a.n < b.n

/** Every promise that can settle without an event has settled. */
const drained = (): Promise<void> => new Promise((done) => setImmediate(done))
