/** The frame of every page: navigation, connection status, and the page itself. */
import { signal } from '@preact/signals'
import type { FunctionComponent } from 'preact'
import { useEffect } from 'preact/hooks'
import { followJobs, jobs } from './background-jobs.tsx'
import { shownCount } from './counted.ts'
import { connection, queues } from './live.ts'
import { Dead } from './pages/dead.tsx'
import { Jobs } from './pages/jobs.tsx'
import { Login } from './pages/login.tsx'
import { Overview } from './pages/overview.tsx'
import { QueuePage } from './pages/queue.tsx'
import { Queues } from './pages/queues.tsx'
import { SchedulePage } from './pages/schedule.tsx'
import { Schedules } from './pages/schedules.tsx'
import { Sessions } from './pages/sessions.tsx'
import { TaskPage } from './pages/task.tsx'
import { Tasks } from './pages/tasks.tsx'
import { TypePage } from './pages/type.tsx'
import { Workers } from './pages/workers.tsx'
import { AskDialog } from './parts/dialogs/ask.tsx'
import { askToSubmit } from './parts/dialogs/submit.tsx'
import { alerts, HealthStrip } from './parts/health.tsx'
import { ICONS, Mark } from './parts/icons.tsx'
import { JobsTray } from './parts/jobs-tray.tsx'
import { Empty } from './parts/states.tsx'
import { Toast } from './parts/toast.tsx'
import { go, hrefOf, type Route, route } from './route.ts'
import { info, isLocked, isReadOnly, logOut, refusal } from './session.ts'
import { visible } from './text/visible.ts'
import { isUtc, switchZone } from './text/zone.ts'
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
  {
    page: 'jobs',
    name: 'Jobs',
    icon: 'jobs',
    Page: Jobs,
    count: () => {
      const count = jobs.value.filter(({ state }) => state === 'running').length
      return { count, text: String(count) }
    },
  },
]

const Nav = () => (
  <nav aria-label="Pages">
    {PLACES.map(({ page, name, icon, count }) => {
      const counted = count?.()
      return (
        <a
          key={page}
          href={hrefOf(page)}
          aria-current={(route.value.page === 'types' ? 'queues' : route.value.page) === page ? 'page' : undefined}
        >
          {ICONS[icon]}
          <span>{name}</span>
          {counted !== undefined && counted.count > 0 && (
            <b class={page === 'dead' ? 'count' : 'count calm'}>{counted.text}</b>
          )}
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

const CONNECTION = { live: 'Live', polling: 'Polling', connecting: 'Connecting', lost: 'Connection lost' } as const

const ConnectionLost = () =>
  connection.value === 'lost' && (
    <p class="lost" role="alert">
      <b>The connection to the server is lost.</b> The page shows the last known state, and nothing can be changed until
      it is back.
    </p>
  )

const Footer = () => (
  <div class="foot">
    <p class="connection" data-state={connection.value} role="status">
      {CONNECTION[connection.value]}
      {isReadOnly.value && <span class="tag">read-only</span>}
    </p>
    {info.value && <p class="store">{info.value.address}</p>}
    {info.value?.session && (
      <p class="caller">
        {info.value.rights.includes('operate') ? (
          <a href={hrefOf('sessions')} title="Browsers that are logged in">
            {info.value.name ?? 'Sessions'}
          </a>
        ) : (
          info.value.name
        )}
        <button type="button" class="quiet small" onClick={() => void logOut()}>
          Log out
        </button>
      </p>
    )}
    <button type="button" class="quiet small" title="Switch between local time and UTC (u)" onClick={switchZone}>
      <span class="unseen">Times: </span>
      {isUtc.value ? 'UTC' : 'Local time'}
    </button>
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
  if (page === 'queues' && rest !== '') return QueuePage
  if (page === 'schedules' && rest !== '') return SchedulePage
  if (page === 'types' && rest !== '') return TypePage
  if (page === 'sessions' && rest === '') return Sessions
  return (rest === '' && PLACES.find((place) => place.page === page)?.Page) || NotFound
}

const titleOf = ({ page, rest }: Route): string =>
  rest === ''
    ? page === 'sessions'
      ? 'Sessions'
      : (PLACES.find((place) => place.page === page)?.name ?? 'Holdfast')
    : page === 'tasks'
      ? `Task ${rest.slice(-8)}`
      : rest

/** Closes what covers the page: the menu of narrow screens, and the notices. */
const closeMenus = (): void => {
  for (const menu of document.querySelectorAll<HTMLDetailsElement>('.side details, details.health')) menu.open = false
}

export const App = () => {
  const { page, rest } = route.value
  useEffect(() => {
    closeMenus()
  }, [page, rest])
  useEffect(() => {
    const count = alerts.value === 0 ? '' : `(${alerts.value}) `
    document.title = visible(`${count}${titleOf(route.value)} · Holdfast`)
  }, [page, rest, alerts.value])
  useEffect(followJobs, [])
  // A login link whose token is wrong or has been replaced leads here.
  const isStaleLink = page === 'login'
  useEffect(() => {
    if (isStaleLink && info.value !== null) go(hrefOf(''))
  }, [isStaleLink, info.value])
  if (isLocked.value) return <Login isStaleLink={isStaleLink} />
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
        <HealthStrip />
        <Page key={`${page}/${rest}`} />
      </main>
      {page !== 'jobs' && <JobsTray />}
      <ConnectionLost />
      <AskDialog />
      <Toast />
    </>
  )
}
