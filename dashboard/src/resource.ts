/** Data read from the server, and read again when it may have changed. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, get } from './api.ts'
import { onChanges } from './live.ts'
import { isLocked } from './session.ts'

export interface Resource<T> {
  /** The last response; it stays while a newer one is loading. */
  readonly data: T | null
  readonly error: ApiError | null
  readonly reload: () => void
}

interface Options {
  readonly query?: Readonly<Record<string, string | number | undefined>>
  /** Read again when one of these tasks changes; 'all': when any task changes. */
  readonly follow?: ReadonlySet<string> | 'all'
  /** Milliseconds between reads, independent of the stream. */
  readonly every?: number
}

/** The shortest interval between two reads of a busy store, */
const REST = 1_000
/** and many times the response time for a slow one: more after a list than after a single task, */
const REST_AFTER = { list: 30, task: 3 } as const
/** but no longer than this, or three times the response time. One slow response is often a machine that was busy for a moment. */
const LONGEST_REST = 10_000
/** After a read that failed for a reason that passes. */
const REST_AFTER_FAILURE = 3_000

/** No answer, one of a proxy, or an error of the server: the same read may succeed later. */
const passes = ({ status }: ApiError): boolean => status < 400 || status === 408 || status >= 500

interface Asked {
  path: string | null
  query: NonNullable<Options['query']>
  key: string | null
  /** The earliest next read, by `performance.now()`. Infinite while a response is pending. */
  notBefore: number
  /** Reads that began, and the latest of them whose response is shown. */
  begun: number
  shown: number
  /** Something may have changed since the last read began. */
  again: boolean
  restAfter: number
  timer: ReturnType<typeof setTimeout> | undefined
}

export const useResource = <T>(path: string | null, { query = {}, follow, every }: Options = {}): Resource<T> => {
  const key = path === null ? null : `${path}?${JSON.stringify(query)}`
  const [state, setState] = useState<{ key: string | null; data: T | null; error: ApiError | null }>({
    key,
    data: null,
    error: null,
  })
  const restAfter = REST_AFTER[follow instanceof Set ? 'task' : 'list']
  const asked = useRef<Asked>({
    path,
    query,
    key,
    restAfter,
    notBefore: 0,
    begun: 0,
    shown: 0,
    again: false,
    timer: undefined,
  }).current
  Object.assign(asked, { path, query, key, restAfter })

  const read = useCallback(() => {
    const { path: now, query: given, key: mine } = asked
    if (now === null) return
    clearTimeout(asked.timer)
    asked.timer = undefined
    const began = performance.now()
    const nth = ++asked.begun
    // A read after an own action may overtake one that began before it.
    const isNews = (): boolean => asked.key === mine && nth > asked.shown
    Object.assign(asked, { again: false, notBefore: Number.POSITIVE_INFINITY })
    void get<T>(now, given)
      .then(
        (data) => {
          if (isNews()) {
            asked.shown = nth
            setState({ key: mine, data, error: null })
          }
          return false
        },
        (thrown: unknown) => {
          if (!isNews() || !(thrown instanceof ApiError)) return false
          asked.shown = nth
          if (thrown.status === 401) isLocked.value = true
          setState((before) => ({ key: mine, data: before.key === mine ? before.data : null, error: thrown }))
          return passes(thrown)
        },
      )
      .then((isRepeated) => {
        if (asked.key !== mine || nth < asked.begun) return
        const ended = performance.now()
        const took = ended - began
        const longest = Math.max(LONGEST_REST, 3 * took)
        asked.notBefore = ended + Math.max(REST, Math.min(asked.restAfter * took, longest))
        if (isRepeated) asked.timer = setTimeout(readWhenSeen, REST_AFTER_FAILURE)
        else if (asked.again) readSoon()
      })
  }, [])

  const readWhenSeen = useCallback(() => {
    if (document.hidden) asked.timer = setTimeout(readWhenSeen, REST_AFTER_FAILURE)
    else read()
  }, [])

  const readSoon = useCallback(() => {
    asked.again = true
    // The pending response triggers another read, or the scheduled read covers it.
    if (asked.notBefore === Number.POSITIVE_INFINITY || asked.timer !== undefined) return
    asked.timer = setTimeout(read, Math.max(0, asked.notBefore - performance.now()))
  }, [])

  useEffect(() => {
    read()
    return () => {
      clearTimeout(asked.timer)
      asked.timer = undefined
    }
  }, [key])

  useEffect(
    () => () => {
      // The component is gone, so a pending response is dropped.
      asked.key = null
    },
    [],
  )

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
