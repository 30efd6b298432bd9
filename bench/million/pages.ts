/** The requests that each page of the dashboard sends when it is opened: see dashboard/src/pages. */
import { fingerprintOf } from '../../src/index.ts'
import { CUSTOMERS, QUEUES, RARE_TYPE } from './mix.ts'

export interface PageOf {
  readonly name: string
  /** Paths below /api/v1, or [path, body] to post. Sent in parallel, as a browser does. */
  readonly asks: readonly (string | readonly [path: string, body: object])[]
  /** When it repeats the request: never, when something changes, or after this many milliseconds. Counts of lists: every ten seconds. */
  readonly again: 'never' | 'changes' | number
}

const VIEWS = ['ready', 'running', 'scheduled', 'retrying', 'completed', 'dead', 'cancelled', 'expired', 'archived']

/** The frame around every page: the health strip, the counts and the jobs, with the charts that all pages may show. */
const FRAME = ['/doctor', '/stats', '/jobs']
const RANGES = ['5m', '1h', '24h', '7d'] as const

const page = (name: string, ...asks: PageOf['asks']): PageOf => ({ name, asks, again: 5_000 })

const typePage = (type: string): PageOf['asks'] => [
  `/charts?range=5m&type=${type}`,
  `/tasks/count?type=${type}&status=ready`,
  `/tasks?type=${type}&status=ready&order=oldest&limit=20`,
  '/workers',
]

const queuePage = (queue: string): PageOf['asks'] => [`/queues/${queue}`, `/charts?range=5m&queue=${queue}`, '/workers']

const DECLINED = fingerprintOf({ name: 'CardDeclined', message: 'the card was declined' }).fingerprint

const tasks = (name: string, query: string): PageOf => ({
  name: `tasks, ${name}`,
  asks: [`/tasks?limit=50${query && `&${query}`}`, `/tasks/count${query && `?${query}`}`],
  again: 'changes',
})

const hoursAgo = (hours: number): string => new Date(Date.now() - hours * 3_600_000).toISOString()

/** `known` has some ids and the cursor of a middle page. */
export const pagesOf = (known: { completed: string; ready: string; dead: string; middle: string }): PageOf[] => [
  { name: 'overview', asks: ['/info', '/stats', '/charts?range=5m'], again: 'never' },
  page('the frame of every page', ...FRAME),
  ...RANGES.map((range) => page(`charts, ${range}`, `/charts?range=${range}`)),
  { name: 'queues', asks: ['/queues', '/charts?range=5m'], again: 'never' },
  ...[QUEUES[0], QUEUES[2]].map((queue) => page(`queue, ${queue}`, ...queuePage(queue))),
  page('type, a busy one', ...typePage('send-mail')),
  page('type, a rare one', ...typePage(RARE_TYPE)),
  page('type, one that is not there', ...typePage('nothing')),
  tasks('all', ''),
  ...VIEWS.map((view) => tasks(view, `status=${view}`)),
  tasks('of a queue', `queue=${QUEUES[2]}`),
  tasks('retrying in a queue', `status=retrying&queue=${QUEUES[1]}`),
  tasks('ready in a queue', `status=ready&queue=${QUEUES[1]}`),
  tasks('completed in a queue', `status=completed&queue=${QUEUES[0]}`),
  tasks('of a type', 'type=send-mail'),
  tasks('of a rare type', `type=${RARE_TYPE}`),
  tasks('of a type that is not there', 'type=nothing'),
  tasks('ready of a rare type', `status=ready&type=${RARE_TYPE}`),
  tasks('scheduled of a type', 'status=scheduled&type=send-mail'),
  tasks('search by tag', `tag=customer%3Dc${CUSTOMERS / 2}`),
  tasks('search by a tag that is not there', 'tag=customer%3Dnobody'),
  tasks('running of a worker', 'status=running&workerId=worker-3%40host-0'),
  page('tasks, oldest first', '/tasks?limit=50&order=oldest', '/tasks/count'),
  page('tasks, oldest of a rare type', `/tasks?limit=50&order=oldest&type=${RARE_TYPE}`),
  page('tasks, oldest ready', '/tasks?limit=50&order=oldest&status=ready'),
  page('tasks, oldest retrying in a queue', `/tasks?limit=50&order=oldest&status=retrying&queue=${QUEUES[1]}`),
  page('tasks, search by text', '/tasks?limit=50&text=order-12345'),
  page('tasks, search by text, nothing', '/tasks?limit=50&text=nothing-like-that'),
  page('tasks, search by text, oldest first', '/tasks?limit=50&text=nothing-like-that&order=oldest'),
  page('tasks, of a group of dead letters', `/tasks?limit=50&status=dead&error=${DECLINED}`),
  page('tasks, of an error that nothing has', '/tasks?limit=50&error=0000000000000000'),
  page('tasks, created in an hour', `/tasks?limit=50&createdAfter=${hoursAgo(6)}&createdBefore=${hoursAgo(5)}`),
  page('tasks, of a group', '/tasks?limit=50&group=acme', '/tasks/count?group=acme'),
  {
    name: 'tasks, a page in the middle',
    asks: [`/tasks?limit=50&cursor=${known.middle}`, '/tasks/count'],
    again: 'changes',
  },
  { name: 'search by key', asks: ['/tasks/by-key?key=order-500000'], again: 'never' },
  ...(['completed', 'ready', 'dead'] as const).map(
    (which): PageOf => ({
      name: `task, ${which}`,
      asks: [`/tasks/${known[which]}`, `/tasks/${known[which]}/why`],
      again: 2_000,
    }),
  ),
  { name: 'dead letters', asks: ['/dead-letters/groups'], again: 15_000 },
  { name: 'dead letters, replay all?', asks: [['/dead-letters/replay/preview', { query: {} }]], again: 15_000 },
  {
    name: 'schedules',
    asks: ['/schedules', ...Array.from({ length: 20 }, (_, n) => `/schedules/schedule-${n}/next?count=4`)],
    again: 5_000,
  },
  page('schedule', '/schedules/schedule-3', '/schedules/schedule-3/next?count=10'),
  { name: 'workers', asks: ['/workers', '/tasks?status=running&limit=200'], again: 3_000 },
  page('jobs', '/jobs'),
  page('sessions', '/sessions'),
]
