/** Calls of the client as an application makes them. Each must end in time, with a result or a typed error. */
import type { Client } from '../../src/runtime/client.ts'
import type { Checker } from './checker/checker.ts'
import type { Host } from './host.ts'
import type { Trace } from './trace.ts'

export interface Caller {
  readonly host: Host
  readonly client: Client
}

export type Outcome<T> =
  | { readonly kind: 'ok'; readonly value: T }
  /** A typed error that says that nothing was done. */
  | { readonly kind: 'refused'; readonly code: string }
  | { readonly kind: 'unclear' }

/** A call takes no longer: several tries, each with the deadline of the store, and pauses of the process on top. */
const LONGEST_CALL = 120_000

interface Pending {
  readonly host: Host
  readonly what: string
  readonly since: number
}

/** After these the call may have taken effect. */
const UNCLEAR: ReadonlySet<string> = new Set(['STORE_UNAVAILABLE', 'STORE_BUSY', 'STORE_CONFLICT'])

export class Calls {
  readonly #checker: Checker
  readonly #trace: Trace
  readonly #pending = new Set<Pending>()
  /** How long each process was not running, which its calls cannot help. */
  readonly lost = new Map<Host, number>()

  constructor(checker: Checker, trace: Trace) {
    this.#checker = checker
    this.#trace = trace
  }

  async run<T>({ host }: { readonly host: Host }, what: string, call: () => Promise<T>): Promise<Outcome<T>> {
    const pending = { host, what, since: host.kernel.now }
    this.#pending.add(pending)
    this.#trace.line(host.name, what)
    try {
      const value = await host.enter(call)
      this.#trace.line(host.name, `${what}: done`)
      return { kind: 'ok', value }
    } catch (error) {
      const code = host.holdfast.isHoldfastError(error) ? error.code : null
      this.#trace.line(host.name, `${what}: ${code ?? String(error)}`)
      if (code === null || code === 'INTERNAL')
        this.#checker.violate('I15', `${what} rejected with ${error instanceof Error ? error.stack : String(error)}`)
      return code === null || UNCLEAR.has(code) ? { kind: 'unclear' } : { kind: 'refused', code }
    } finally {
      this.#pending.delete(pending)
      this.#mustBeInTime(pending)
    }
  }

  /** Of processes that live. */
  get pending(): readonly Pending[] {
    return [...this.#pending].filter(({ host }) => host.state !== 'dead')
  }

  mustHaveEnded(): void {
    for (const pending of this.pending) {
      this.#checker.violate('I15', `${pending.what} of ${pending.host.name} never ended`)
    }
  }

  #mustBeInTime({ host, what, since }: Pending): void {
    const took = host.kernel.now - since - (this.lost.get(host) ?? 0)
    if (took > LONGEST_CALL) this.#checker.violate('I15', `${what} of ${host.name} took ${Math.round(took)} ms`)
  }
}
