/** Keys: `g` and a letter goes to a page, `/` searches, `n` submits, `j` and `k` move between rows, `?` lists the keys. */
import { ask } from './parts/ask.tsx'
import { KeysHelp } from './parts/keys-help.tsx'
import { askToSubmit } from './parts/submit.tsx'
import { go, hrefOf } from './route.ts'
import { refusal } from './session.ts'
import { nextTheme, setTheme } from './theme.ts'

const PAGES: Readonly<Record<string, string>> = {
  o: '',
  q: 'queues',
  t: 'tasks',
  d: 'dead',
  s: 'schedules',
  w: 'workers',
}

/** `g` waits this long for its letter. */
const PATIENCE = 1_200
let wentAt = Number.NEGATIVE_INFINITY

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.closest('input, textarea, select, dialog') !== null

const search = (): void => {
  go(hrefOf('tasks'))
  // The page is drawn before the next frame.
  requestAnimationFrame(() =>
    requestAnimationFrame(() => document.querySelector<HTMLInputElement>('input[type=search]')?.focus()),
  )
}

const walk = (by: 1 | -1): void => {
  const rows = [...document.querySelectorAll<HTMLElement>('main [data-row]')]
  const at = rows.indexOf(document.activeElement as HTMLElement)
  rows[at === -1 ? (by === 1 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by))]?.focus()
}

const KEYS: Readonly<Record<string, () => void>> = {
  '/': search,
  n: () => {
    if (refusal('submit') === null) askToSubmit()
  },
  j: () => walk(1),
  k: () => walk(-1),
  l: () => setTheme(nextTheme()),
  '?': () => ask({ title: 'Keys', Body: KeysHelp }),
}

export const listenToKeys = (): void => {
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
    const page = event.timeStamp - wentAt < PATIENCE ? PAGES[event.key] : undefined
    wentAt = event.key === 'g' ? event.timeStamp : Number.NEGATIVE_INFINITY
    if (page === undefined && !Object.hasOwn(KEYS, event.key)) return
    event.preventDefault()
    if (page !== undefined) go(hrefOf(page))
    else KEYS[event.key]!()
  })
}
