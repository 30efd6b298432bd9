/** The store's time, ticking. Everything that says "3 s ago" reads it. */
import { signal } from '@preact/signals'

let ahead = 0

export const now = signal(Date.now())

export const storeTime = (): number => Date.now() + ahead

/** `at` is what the store's clock said when ours said `ours`. */
export const setStoreTime = (at: number, ours: number): void => {
  ahead = at - ours
  now.value = storeTime()
}

setInterval(() => {
  if (!document.hidden) now.value = storeTime()
}, 1_000)
