/** A bar for progress that says how far it is: a number from 0 to 1, or `{ percent }`. */
export const percentOf = (progress: unknown): number | null => {
  if (typeof progress === 'number') return progress >= 0 && progress <= 1 ? progress * 100 : null
  if (typeof progress !== 'object' || progress === null) return null
  const { percent, done, total } = progress as { percent?: unknown; done?: unknown; total?: unknown }
  if (typeof percent === 'number') return Math.min(100, Math.max(0, percent))
  if (typeof done !== 'number' || typeof total !== 'number' || total <= 0) return null
  return Math.min(100, Math.max(0, (done / total) * 100))
}

export const PercentBar = ({ progress }: { readonly progress: unknown }) => {
  const percent = percentOf(progress)
  return percent === null ? null : (
    <progress class="slim" max={100} value={percent} aria-label={`${Math.round(percent)} percent`} />
  )
}
