/** The `{ signal }` option of a call. One mechanism serves every call: a guard around the store. */
import { HoldfastError } from '../core/errors.ts'
import type { Store } from '../store/store.ts'
import type { Session } from './session.ts'

/** Options of any call to the store. */
export interface CallOptions {
  /** When it aborts, the call rejects at once with ABORTED: `details.sent` says whether a write was under way. */
  readonly signal?: AbortSignal
}

/**
 * Runs `work` with a guarded session: its store refuses every call after the signal has aborted, so nothing more is sent.
 * `work` starts synchronously, because a submit inside a transaction must.
 */
export const abortable = <T>(
  session: Session,
  signal: AbortSignal | undefined,
  work: (session: Session) => Promise<T>,
): Promise<T> => {
  if (signal === undefined) return work(session)
  const guard = new Guard(signal)
  if (signal.aborted) return Promise.reject(guard.error())
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(guard.error())
    signal.addEventListener('abort', abort, { once: true })
    work({ ...session, store: guard.guarded(session.store) })
      .then(resolve, reject)
      .finally(() => {
        signal.removeEventListener('abort', abort)
        // The result, a lease for example, may be used after the call: the guard must not refuse it.
        guard.isOver = true
      })
  })
}

/** Calls that may change the store. An aborted claim may also leave a lease behind. */
const WRITES: ReadonlySet<string | symbol> = new Set(['insert', 'claim', 'commit', 'renew', 'remove', 'put', 'delete'])

/** Nested objects of a store whose methods are guarded too. */
const PARTS: ReadonlySet<string | symbol> = new Set(['documents', 'detachedKeys'])

class Guard {
  readonly #signal: AbortSignal
  #isSent = false
  isOver = false

  constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  guarded(store: Store): Store {
    return this.#wrap(store)
  }

  error(): HoldfastError {
    const sent = this.#isSent
    const message = sent
      ? 'the call was aborted while a write was under way: it may or may not have taken effect'
      : 'the call was aborted, and nothing was written'
    return new HoldfastError(
      'ABORTED',
      message,
      sent ? { sent, advice: SENT } : { sent },
      this.#signal.reason ?? undefined,
    )
  }

  #wrap<Part extends object>(part: Part): Part {
    return new Proxy(part, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target)
        if (PARTS.has(name) && typeof value === 'object' && value !== null) return this.#wrap(value)
        if (typeof value !== 'function') return value
        return (...args: unknown[]): unknown => {
          this.#check(name)
          return Reflect.apply(value, target, args)
        }
      },
    })
  }

  #check(name: string | symbol): void {
    if (this.isOver) return
    if (this.#signal.aborted) throw this.error()
    if (WRITES.has(name)) this.#isSent = true
  }
}

const SENT =
  'Read the task, or repeat the call: a submit under the same id or idempotency key is recognised. A lease that was taken lapses by itself.'
