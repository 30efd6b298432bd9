/** The frame of every page: navigation, connection status, and the page itself. */
import { signal } from '@preact/signals'
import type { FunctionComponent } from 'preact'
import { useEffect } from 'preact/hooks'
import { shownCount } from './counted.ts'
import { connection, queues } from './live.ts'
import { Dead } from './pages/dead.tsx'
import { Login } from './pages/login.tsx'
import { Overview } from './pages/overview.tsx'
import { Queues } from './pages/queues.tsx'
import { Schedules } from './pages/schedules.tsx'
import { TaskPage } from './pages/task.tsx'
import { Tasks } from './pages/tasks.tsx'
import { Workers } from './pages/workers.tsx'
import { AskDialog } from './parts/ask.tsx'
import { ICONS, Mark } from './parts/icons.tsx'
import { Empty } from './parts/states.tsx'
import { askToSubmit } from './parts/submit.tsx'
import { Toast } from './parts/toast.tsx'
import { hrefOf, type Route, route } from './route.ts'
import { info, isLocked, isReadOnly, refusal } from './session.ts'
import { nextTheme, setTheme, theme } from './theme.ts'

interface Place {
  readonly page: string
  readonly name: string
  readonly icon: keyof typeof ICONS
  readonly Page: FunctionComponent
  readonly count?: () => { readonly count: number; readonly text: string }
}

const PLACES: readonly Place[] = [
  { page: '', name: 'Overview', icon: 'overview', Page: Overview },
  { page: 'queues', name: 'Queues', icon: 'queues', Page: Queues },
  { page: 'tasks', name: 'Tasks', icon: 'tasks', Page: Tasks },
  {
    page: 'dead',
    name: 'Dead letters',
    icon: 'dead',
    Page: Dead,
    count: () => shownCount(queues.value ?? [], 'failed'),
  },
  { page: 'schedules', name: 'Schedules', icon: 'schedules', Page: Schedules },
  { page: 'workers', name: 'Workers', icon: 'workers', Page: Workers },
]

const Nav = () => (
  <nav aria-label="Pages">
    {PLACES.map(({ page, name, icon, count }) => {
      const counted = count?.()
      return (
        <a key={page} href={hrefOf(page)} aria-current={route.value.page === page ? 'page' : undefined}>
          {ICONS[icon]}
          <span>{name}</span>
          {counted !== undefined && counted.count > 0 && <b class="count">{counted.text}</b>}
        </a>
      )
    })}
  </nav>
)

/** The same width as in narrow.css. */
const narrow = matchMedia('(max-width: 820px)')
const isNarrow = signal(narrow.matches)
narrow.addEventListener('change', () => {
  isNarrow.value = narrow.matches
})

const CONNECTION = { live: 'Live', connecting: 'Connecting', lost: 'Connection lost' } as const

const Footer = () => (
  <div class="foot">
    <p class="connection" data-state={connection.value} role="status">
      {CONNECTION[connection.value]}
      {isReadOnly.value && <span class="tag">read-only</span>}
    </p>
    {info.value && <p class="store">{info.value.address}</p>}
    <button
      type="button"
      class="quiet small"
      title="Switch between system, light and dark (l)"
      onClick={() => setTheme(nextTheme())}
    >
      {ICONS[theme.value]}
      <span class="unseen">Theme: </span>
      {theme.value}
    </button>
  </div>
)

const NotFound = () => (
  <Empty title="There is no such page">
    <a href={hrefOf('')}>Go to the overview</a>
  </Empty>
)

const pageOf = ({ page, rest }: Route): FunctionComponent => {
  if (page === 'tasks' && rest !== '') return TaskPage
  return (rest === '' && PLACES.find((place) => place.page === page)?.Page) || NotFound
}

const titleOf = ({ page, rest }: Route): string =>
  rest === '' ? (PLACES.find((place) => place.page === page)?.name ?? 'Holdfast') : `Task ${rest.slice(-8)}`

/** Closes the menu of narrow screens. */
const closeMenu = (): void => {
  for (const menu of document.querySelectorAll<HTMLDetailsElement>('.side details')) menu.open = false
}

export const App = () => {
  const { page, rest } = route.value
  useEffect(() => {
    document.title = `${titleOf(route.value)} · Holdfast`
    closeMenu()
  }, [page, rest])
  if (isLocked.value) return <Login />
  const Page = pageOf(route.value)
  const refused = refusal('submit')
  return (
    <>
      <button type="button" class="skip" onClick={() => document.querySelector<HTMLElement>('main h1')?.focus()}>
        Skip to the page
      </button>
      <aside class="side">
        <a class="brand" href={hrefOf('')}>
          <Mark />
          Holdfast
        </a>
        <button
          type="button"
          class="primary submit"
          disabled={refused !== null}
          title={refused ?? 'n'}
          onClick={() => askToSubmit()}
        >
          {ICONS.plus} Submit
        </button>
        {isNarrow.value ? (
          <details class="menu">
            <summary>
              {ICONS.menu}
              <span>Menu</span>
            </summary>
            <Nav />
            <Footer />
          </details>
        ) : (
          <div class="rail">
            <Nav />
            <Footer />
          </div>
        )}
      </aside>
      <main id="main">
        <Page key={`${page}/${rest}`} />
      </main>
      <AskDialog />
      <Toast />
    </>
  )
}
