/** Bulk replays and purges run as background jobs on the server. Polls their progress until they end, on every page. */
import { signal } from '@preact/signals'
import { get, part, post } from './api.ts'
import { toast } from './parts/toast.tsx'
import { number } from './words.ts'

interface Report {
  readonly matched: number
  readonly replayed?: number
  readonly purged?: number
  readonly stopped: 'canary' | 'aborted' | 'store' | null
  readonly refused: readonly unknown[]
}

interface BackgroundJob {
  readonly id: string
  readonly name: 'replay' | 'purge'
  readonly state: 'running' | 'done' | 'failed'
  readonly done: number
  readonly report: Report | null
  readonly error: { readonly message: string } | null
}

const EVERY = 700
const underWay = signal<readonly BackgroundJob[]>([])

const DONE = { replay: 'Replayed', purge: 'Purged' } as const
const DOING = { replay: 'Replaying', purge: 'Purging' } as const

const STOPPED = {
  canary: 'stopped: a canary did not complete',
  aborted: 'stopped by an operator',
  store: 'stopped: contact with the store was lost',
} as const

const summary = ({ name, report, error }: BackgroundJob): string => {
  if (report === null) return `${DOING[name]} failed: ${error?.message ?? 'unknown error'}`
  const parts = [
    `${DONE[name]} ${number(report.replayed ?? report.purged ?? 0)} of ${number(report.matched)}`,
    report.stopped && STOPPED[report.stopped],
    report.refused.length > 0 && `${number(report.refused.length)} refused`,
  ]
  return parts.filter(Boolean).join('; ')
}

/** Polls until the job has ended, then calls `then`. */
const follow = async (begun: BackgroundJob, then: () => void): Promise<void> => {
  let job = begun
  while (job.state === 'running') {
    underWay.value = [...underWay.value.filter(({ id }) => id !== begun.id), job]
    await new Promise((wake) => setTimeout(wake, EVERY))
    job = await get<BackgroundJob>(`/jobs/${part(begun.id)}`).catch(() => job)
  }
  underWay.value = underWay.value.filter(({ id }) => id !== begun.id)
  toast(summary(job))
  then()
}

export const begin = async (name: 'replay' | 'purge', body: object, then: () => void): Promise<void> => {
  const job = await post<BackgroundJob>(`/dead-letters/${name}`, body)
  void follow(job, then)
}

export const UnderWay = () => (
  <>
    {underWay.value.map(({ id, name, done }) => (
      <p class="why" key={id} role="status">
        {DOING[name]}: {number(done)} so far.{' '}
        <button type="button" class="plain small" onClick={() => void post(`/jobs/${part(id)}/stop`)}>
          Stop
        </button>
      </p>
    ))}
  </>
)
