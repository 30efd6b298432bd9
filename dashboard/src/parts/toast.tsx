/** A short message about the last action, which disappears after a while. */
import { signal } from '@preact/signals'

const LASTS = 5_000
const said = signal<string | null>(null)
let timer = 0

export const toast = (text: string): void => {
  said.value = text
  clearTimeout(timer)
  timer = setTimeout(() => {
    said.value = null
  }, LASTS)
}

export const Toast = () => (
  <div class="toast" role="status" aria-live="polite">
    {said.value !== null && <p>{said.value}</p>}
  </div>
)
