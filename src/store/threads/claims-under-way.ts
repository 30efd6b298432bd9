/** A keeper's list of claims whose replies the event loop has not seen yet. */
import type { LeaseBoard } from './lease-board.ts'

interface Claim {
  readonly op: string
  readonly ticket: number
  /** Monotonic: when it was announced. */
  readonly since: number
}

export class ClaimsUnderWay {
  readonly #board: LeaseBoard
  #claims: Claim[] = []

  constructor(board: LeaseBoard) {
    this.#board = board
  }

  get isEmpty(): boolean {
    return this.#claims.length === 0
  }

  add(op: string, ticket: number, since: number): void {
    // A busy worker claims many times per round; the board limits how many are listed.
    this.forgetAnswered()
    this.#claims.push({ op, ticket, since })
  }

  forgetAnswered(): void {
    this.#claims = this.#claims.filter(({ ticket }) => this.#board.isClaiming(ticket))
  }

  olderThan(now: number, age: number): readonly Claim[] {
    return this.#claims.filter(({ since }) => now - since >= age)
  }
}
