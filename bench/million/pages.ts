/** The requests that each page of the dashboard sends when it is opened: see dashboard/src/pages. */
import { CUSTOMERS, QUEUES, RARE_TYPE } from './mix.ts'

export interface PageOf {
  readonly name: string
  /** Paths below /api/v1, or [path, body] to post. Sent in parallel, as a browser does. */
  readonly asks: readonly (string | readonly [path: string, body: object])[]
  /** When it repeats the request: never, when something changes, or after this many milliseconds. Counts of lists: every ten seconds. */
  readonly again: 'never' | 'changes' | number
}

const VIEWS = ['ready', 'running', 'scheduled', 'retrying', 'completed', 'dead', 'cancelled', 'expired', 'archived']

const tasks = (name: string, query: string): PageOf => ({
  name: `tasks, ${name}`,
  asks: [`/tasks?limit=50${query && `&${query}`}`, `/tasks/count${query && `?${query}`}`],
  again: 'changes',
})

/** `known` has some ids and the cursor of a middle page. */
export const pagesOf = (known: { completed: string; ready: string; dead: string; middle: string }): PageOf[] => [
  { name: 'overview', asks: ['/info', '/stats'], again: 'never' },
  { name: 'queues', asks: ['/queues'], again: 'never' },
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
  { name: 'workers', asks: ['/workers'], again: 3_000 },
]
