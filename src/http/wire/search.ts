/** Finds tasks by a part of their id, type, key or error. No index helps with that: it reads the newest tasks for a short while. */
import { type Client, fingerprintOf, type ListOptions, type Task } from '../../index.ts'
import type { Redaction } from './redaction.ts'

export interface Search {
  /** A part of the id, the type, the idempotency key or the error. */
  readonly text?: string
  /** The fingerprint of an error. */
  readonly error?: string
}

/** Then the page ends early, with a cursor. */
const LONGEST = 200
const PAGE = 500

/** What a caller asks for, as it may search. */
export const wantedBy = (
  { text, error }: { readonly text?: string | undefined; readonly error?: string | undefined },
  redaction: Redaction,
): Search => ({
  ...(text && { text }),
  ...(error && { error: redaction.fingerprintOf(error) }),
})

/** Without `mayReadErrors`, messages are not searched: a caller could guess them. */
const matcherOf = ({ text, error }: Search, mayReadErrors: boolean): ((task: Task) => boolean) => {
  const part = text?.toLowerCase()
  const has = (value: string | null | undefined): boolean => value?.toLowerCase().includes(part!) ?? false
  return ({ id, type, idempotencyKey, lastError }) =>
    (error === undefined || fingerprintOf(lastError).fingerprint === error) &&
    (part === undefined ||
      has(id) ||
      has(type) ||
      (mayReadErrors && (has(idempotencyKey) || has(lastError?.name) || has(lastError?.message))))
}

export const search = async (
  client: Client,
  options: ListOptions & { readonly limit: number },
  wanted: Search,
  mayReadErrors: boolean,
): Promise<{ readonly tasks: readonly Task[]; readonly cursor: string | null }> => {
  const matches = matcherOf(wanted, mayReadErrors)
  const began = performance.now()
  const found: Task[] = []
  let { cursor } = options
  for (let last = began; ; ) {
    const page = await client.list({ ...options, limit: PAGE, ...(cursor === undefined ? null : { cursor }) })
    for (const task of page.tasks) {
      if (!matches(task)) continue
      if (found.length === options.limit) return { tasks: found, cursor: found.at(-1)!.id }
      found.push(task)
    }
    if (page.cursor === null) return { tasks: found, cursor: null }
    cursor = page.cursor
    const now = performance.now()
    // The next step takes about as long as this one.
    if (now - began + (now - last) > LONGEST) return { tasks: found, cursor }
    last = now
  }
}
