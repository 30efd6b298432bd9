/** Keys: `g` and a letter goes to a page, `/` searches, `n` submits, `j` and `k` move between rows, `?` lists the keys. */
import { lastFilters } from './filters.ts'
import { ask } from './parts/dialogs/ask.tsx'
import { KeysHelp } from './parts/dialogs/keys-help.tsx'
import { askToSubmit } from './parts/dialogs/submit.tsx'
import { go, hrefOf, route, syncRoute } from './route.ts'
import { refusal } from './session.ts'
import { switchZone } from './text/zone.ts'
import { nextTheme, setTheme } from './theme.ts'

const PAGES: Readonly<Record<string, string>> = {
  o: '',
  q: 'queues',
  t: 'tasks',
  d: 'dead',
  s: 'schedules',
  w: 'workers',
  j: 'jobs',
}

/** `g` waits this long for its letter. */
const PATIENCE = 1_200
let wentAt = Number.NEGATIVE_INFINITY

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.closest('input, textarea, select, dialog') !== null

/** How many frames the page with the search field may take to appear. */
const PATIENT_FRAMES = 120

const focusSearch = (frames: number): void => {
  const field = document.querySelector<HTMLInputElement>('input[type=search]')
  if (field !== null) field.focus()
  else if (frames > 0) requestAnimationFrame(() => focusSearch(frames - 1))
}

const search = (): void => {
  syncRoute()
  if (route.value.page !== 'tasks' || route.value.rest !== '') go(hrefOf('tasks', lastFilters.value))
  // By then the fields of the page before are gone.
  requestAnimationFrame(() => requestAnimationFrame(() => focusSearch(PATIENT_FRAMES)))
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
  u: switchZone,
  '?': () => ask({ title: 'Keys', Body: KeysHelp }),
}

export const listenToKeys = (): void => {
  addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
    // A click on the text of a dialog moves the focus to the page, which must not take the keys then.
    if (document.querySelector('dialog[open]') !== null) return
    const page = event.timeStamp - wentAt < PATIENCE ? PAGES[event.key] : undefined
    wentAt = event.key === 'g' ? event.timeStamp : Number.NEGATIVE_INFINITY
    if (page === undefined && !Object.hasOwn(KEYS, event.key)) return
    event.preventDefault()
    if (page !== undefined) go(hrefOf(page))
    else KEYS[event.key]!()
  })
}
