/** Calls of the functions that claim under limits. They must run in read committed, whatever the connections have as their default. */
import { HoldfastError } from '../../../core/errors.ts'
import type { ClaimRequest } from '../../store.ts'
import type { Executor, Value } from '../connection.ts'
import { type Called, decodeCall, ENDED } from './called.ts'

export const isBound = ({ limits }: ClaimRequest): boolean =>
  limits !== undefined && (limits.concurrency !== null || limits.notAfter !== null || limits.turns !== null)

const textOf = (schema: string, name: string, values: number): string =>
  `select c.*, ${ENDED} from ${schema}.${name}(${Array.from({ length: values }, (_, n) => `$${n + 1}`).join(', ')}) c`

export class LimitedCalls {
  readonly #executor: Executor
  readonly #text: string
  /** This pool has another default. */
  #isIsolated = false

  constructor(executor: Executor, schema: string, name: string, values: number) {
    this.#executor = executor
    this.#text = textOf(schema, name, values)
  }

  /** In good hope first: a transaction with a level of its own takes more than one statement. */
  async call(want: ClaimRequest, values: readonly Value[]): Promise<Called> {
    if (!this.#isIsolated) {
      const called = decodeCall(await this.#executor.query(this.#text, values), want)
      if (!called.isIsolated) return called
      this.#isIsolated = true
    }
    const { readCommitted } = this.#executor
    if (readCommitted === undefined)
      throw new HoldfastError('INTERNAL', 'a claim under limits needs a transaction of isolation level read committed')
    return decodeCall(await readCommitted(this.#text, values), want)
  }
}

/** In claim order, no more than the queue has places. */
export class CappedCalls {
  readonly #calls: LimitedCalls
  readonly #patience: string

  constructor(executor: Executor, schema: string, patience: number) {
    this.#calls = new LimitedCalls(executor, schema, 'claim_capped', 15)
    this.#patience = String(patience)
  }

  /** `values` are those of a claim without limits. */
  call(want: ClaimRequest, values: readonly Value[]): Promise<Called> {
    const { concurrency = null, notAfter = null } = want.limits ?? {}
    return this.#calls.call(want, [...values, concurrency, notAfter, this.#patience])
  }
}
