/** The store's time, updated every second. All relative times use it. */
import { signal } from '@preact/signals'

let ahead = 0

export const now = signal(Date.now())

export const storeTime = (): number => Date.now() + ahead

/** `at` is the store's time when the browser's clock was `ours`. */
export const setStoreTime = (at: number, ours: number): void => {
  ahead = at - ours
  now.value = storeTime()
}

setInterval(() => {
  if (!document.hidden) now.value = storeTime()
}, 1_000)
