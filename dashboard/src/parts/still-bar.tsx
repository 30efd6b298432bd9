/** Above a list that changes: stops it, and says how many rows wait to be shown. Its height never changes. */
import type { Still } from '../still.ts'
import { number } from '../text/words.ts'

interface BarProps {
  readonly of: Still<unknown>
  /** 'task' */
  readonly one: string
}

export const StillBar = ({ of: { newer, isMore, isPaused, pause, catchUp }, one }: BarProps) => {
  const toggle = (): void => {
    if (isPaused) catchUp()
    pause(!isPaused)
  }
  return (
    <span class="still">
      {newer > 0 && (
        <button type="button" class="newer" onClick={catchUp}>
          {number(newer)}
          {isMore && '+'} new {newer === 1 ? one : `${one}s`}
        </button>
      )}
      <button type="button" class="quiet small" aria-pressed={isPaused} onClick={toggle}>
        {isPaused ? 'Continue updates' : 'Pause updates'}
      </button>
    </span>
  )
}
