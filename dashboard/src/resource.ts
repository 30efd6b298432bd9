/** Something that is read from the server, and read again when it may have changed. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, get } from './api.ts'
import { onChanges } from './live.ts'
import { isLocked } from './session.ts'

export interface Resource<T> {
  /** The last answer; it stays while a newer one is on its way. */
  readonly data: T | null
  readonly error: ApiError | null
  readonly reload: () => void
}

interface Options {
  readonly query?: Readonly<Record<string, string | number | undefined>>
  /** Read again when one of these tasks moved; 'all': when any did. */
  readonly follow?: ReadonlySet<string> | 'all'
  /** Milliseconds between readings, whatever is heard. */
  readonly every?: number
}

/** A busy store is not read again more often than this. */
const REST = 1_000

export const useResource = <T>(path: string | null, { query = {}, follow, every }: Options = {}): Resource<T> => {
  const key = path === null ? null : `${path}?${JSON.stringify(query)}`
  const [state, setState] = useState<{ key: string | null; data: T | null; error: ApiError | null }>({
    key,
    data: null,
    error: null,
  })
  const asked = useRef({ path, query, key, at: 0, waiting: 0 as number | undefined })
  asked.current = { ...asked.current, path, query, key }

  const read = useCallback(() => {
    const { path: now, query: given, key: mine } = asked.current
    asked.current.waiting = undefined
    asked.current.at = performance.now()
    if (now === null) return
    get<T>(now, given).then(
      (data) => {
        if (asked.current.key === mine) setState({ key: mine, data, error: null })
      },
      (thrown: unknown) => {
        if (asked.current.key !== mine || !(thrown instanceof ApiError)) return
        if (thrown.status === 401) isLocked.value = true
        setState((before) => ({ key: mine, data: before.key === mine ? before.data : null, error: thrown }))
      },
    )
  }, [])

  const readSoon = useCallback(() => {
    if (asked.current.waiting !== undefined) return
    const rest = Math.max(0, asked.current.at + REST - performance.now())
    asked.current.waiting = setTimeout(read, rest) as unknown as number
  }, [])

  useEffect(() => {
    read()
    return () => clearTimeout(asked.current.waiting)
  }, [key])

  useEffect(() => {
    if (follow === undefined) return
    return onChanges((ids, skipped) => {
      const concerns = follow === 'all' || skipped > 0 || [...follow].some((id) => ids.has(id))
      if (concerns) readSoon()
    })
  }, [key, follow === 'all' ? 'all' : [...(follow ?? [])].join()])

  useEffect(() => {
    if (every === undefined) return
    const timer = setInterval(() => {
      if (!document.hidden) readSoon()
    }, every)
    return () => clearInterval(timer)
  }, [key, every])

  const isMine = state.key === key
  return { data: isMine ? state.data : null, error: isMine ? state.error : null, reload: read }
}
