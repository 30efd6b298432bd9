/** Keeps a list still while it is read: a row that moves away under the pointer opens another task than the one that was read. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { toast } from './parts/toast.tsx'

/** After the pointer moved anywhere, it may be on its way to a row for this long. */
const ON_ITS_WAY = 2_500
/** A touch that comes sooner than this after a change was meant for the row that was there before. */
const REACTION = 350

export interface Still<T> {
  /** The data to show: the latest, or those from the moment when the list was stopped. */
  readonly shown: T | null
  /** Rows that are waiting to be shown. */
  readonly newer: number
  /** There are more than `newer`, because not every change was read. */
  readonly isMore: boolean
  readonly isPaused: boolean
  readonly pause: (isPaused: boolean) => void
  readonly catchUp: () => void
  /** Called after the user's own action: the next data are shown even if the list is still. */
  readonly showNext: () => void
  /** Belongs to the element around the rows. */
  readonly list: (element: HTMLElement | null) => void
}

interface Options<T> {
  /** The question that the data answers: a different one is shown at once. */
  readonly key: string
  readonly idsOf: (data: T) => readonly string[]
  /** Rows are ticked. */
  readonly isChosen?: boolean
}

interface Kept<T> {
  readonly key: string
  readonly data: T
  readonly ids: ReadonlySet<string>
  readonly newer: Set<string>
  isMore: boolean
}

const isRead = (list: HTMLElement): boolean => {
  if (list.matches(':hover') || list.contains(document.activeElement)) return true
  const selection = document.getSelection()
  return selection !== null && !selection.isCollapsed && list.contains(selection.anchorNode)
}

export const useStill = <T>(data: T | null, { key, idsOf, isChosen = false }: Options<T>): Still<T> => {
  const list = useRef<HTMLElement | null>(null)
  const kept = useRef<Kept<T> | null>(null)
  const read = useRef<T | null>(null)
  const changedAt = useRef(Number.NEGATIVE_INFINITY)
  const isHeld = useRef(false)
  const isNextShown = useRef(false)
  const [isPaused, pause] = useState(false)
  const [, redraw] = useState(0)

  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let movedAt = Number.NEGATIVE_INFINITY
    const look = (): void => {
      clearTimeout(timer)
      const left = movedAt + ON_ITS_WAY - performance.now()
      const was = isHeld.current
      isHeld.current = left > 0 || (list.current !== null && isRead(list.current))
      timer = setTimeout(look, Math.max(left, 250))
      if (was && !isHeld.current) redraw((n) => n + 1)
    }
    const moved = (): void => {
      movedAt = performance.now()
      look()
    }
    const refuse = (event: Event): void => {
      if ((event as PointerEvent).pointerType !== 'touch' || !list.current?.contains(event.target as Node)) return
      if (event.timeStamp - changedAt.current > REACTION) return
      event.preventDefault()
      event.stopPropagation()
      toast('The list has just changed. Tap again.')
    }
    look()
    addEventListener('pointermove', moved)
    addEventListener('pointerdown', moved)
    addEventListener('focusin', look)
    document.addEventListener('selectionchange', look)
    addEventListener('click', refuse, true)
    return () => {
      clearTimeout(timer)
      removeEventListener('pointermove', moved)
      removeEventListener('pointerdown', moved)
      removeEventListener('focusin', look)
      document.removeEventListener('selectionchange', look)
      removeEventListener('click', refuse, true)
    }
  }, [])

  const take = (fresh: T): void => {
    const ids = new Set(idsOf(fresh))
    const before = kept.current?.ids ?? ids
    if (before.size > 0 && [...ids].some((id) => !before.has(id))) changedAt.current = performance.now()
    kept.current = { key, data: fresh, ids, newer: new Set(), isMore: false }
  }

  if (data === null) {
    if (kept.current?.key !== key) kept.current = null
  } else if (kept.current === null || data !== read.current || !isHeld.current) {
    const isStill =
      kept.current?.key === key &&
      kept.current.ids.size > 0 &&
      !isNextShown.current &&
      (isHeld.current || isPaused || isChosen)
    if (!isStill) {
      if (kept.current?.data !== data) {
        take(data)
        isNextShown.current = false
      }
    } else if (data !== read.current) {
      const ids = idsOf(data)
      const unknown = ids.filter((id) => !kept.current!.ids.has(id))
      // Nothing of the last read is left: more rows came than one page shows.
      if (unknown.length === ids.length && !unknown.some((id) => kept.current!.newer.has(id)))
        kept.current!.isMore = true
      for (const id of unknown) kept.current!.newer.add(id)
    }
  }
  read.current = data

  const catchUp = useCallback(() => {
    kept.current = null
    redraw((n) => n + 1)
  }, [])
  const showNext = useCallback(() => {
    isNextShown.current = true
  }, [])
  const setList = useCallback((element: HTMLElement | null) => {
    list.current = element
  }, [])
  return {
    shown: kept.current?.data ?? null,
    newer: kept.current?.newer.size ?? 0,
    isMore: kept.current?.isMore ?? false,
    isPaused,
    pause,
    catchUp,
    showNext,
    list: setList,
  }
}
