/** Bulk actions run as background jobs on the server. Every page shows the running ones; the page of jobs shows the result of each. */
import { signal } from '@preact/signals'
import { get, part, post } from './api.ts'
import { connection } from './live.ts'
import { ask } from './parts/dialogs/ask.tsx'
import { toast } from './parts/toast.tsx'
import { number } from './text/words.ts'

interface Report {
  readonly matched: number
  readonly replayed?: number
  readonly purged?: number
  readonly changed?: number
  readonly stopped: 'canary' | 'aborted' | 'store' | null
  readonly refused: readonly { readonly id: string; readonly error: { readonly message: string } }[]
  readonly refusedCount?: number
}

export interface BackgroundJob {
  readonly id: string
  readonly name: keyof typeof WORDS
  readonly state: 'running' | 'done' | 'failed'
  readonly startedAt: string
  readonly endedAt: string | null
  readonly by: string | null
  readonly done: number
  readonly total: number | null
  readonly canary: number | null
  readonly report: Report | null
  readonly error: { readonly message: string } | null
}

const WORDS = {
  replay: ['Replay', 'Replaying', 'Replayed'],
  purge: ['Purge', 'Purging', 'Purged'],
  retry: ['Retry', 'Retrying', 'Retried'],
  cancel: ['Cancel', 'Cancelling', 'Cancelled'],
  archive: ['Archive', 'Archiving', 'Archived'],
  unarchive: ['Unarchive', 'Unarchiving', 'Unarchived'],
  delete: ['Delete', 'Deleting', 'Deleted'],
} as const

const EVERY = 1_000
/** How often the list is read while no job runs: other users may start one. */
const IDLE_EVERY = 8_000

/** Newest first. */
export const jobs = signal<readonly BackgroundJob[]>([])
/** The jobs that this tab started, and what to do when each has ended. */
const mine = new Map<string, () => void>()
let timer = 0

const STOPPED = {
  canary: 'stopped, because a canary did not complete',
  aborted: 'stopped by an operator',
  store: 'stopped, because contact with the store was lost',
} as const

/** A kind of job that only a newer server knows. */
const wordsOf = ({ name }: BackgroundJob): readonly [string, string, string] =>
  Object.hasOwn(WORDS, name) ? WORDS[name] : [name, name, name]

export const nameOf = (job: BackgroundJob): string => wordsOf(job)[0]

/** Describes what a job does, or its result. */
export const summary = (job: BackgroundJob): string => {
  const { state, report, error, done, total, canary } = job
  const [, doing, did] = wordsOf(job)
  if (state === 'running') {
    const progress = `${doing}: ${number(done)}${total === null ? '' : ` of ${number(total)}`}`
    return canary !== null && done <= canary && done !== total ? `${progress}, waiting for the canary` : progress
  }
  if (report === null) return `${doing} failed: ${error?.message ?? 'unknown error'}`
  const refused = report.refusedCount ?? report.refused.length
  return [
    `${did} ${number(report.replayed ?? report.purged ?? report.changed ?? 0)} of ${number(report.matched)}`,
    report.stopped && STOPPED[report.stopped],
    refused > 0 && `${number(refused)} refused`,
  ]
    .filter(Boolean)
    .join('; ')
}

const read = async (): Promise<void> => {
  clearTimeout(timer)
  if (!document.hidden && connection.value !== 'lost') {
    const answer = await get<{ jobs: BackgroundJob[] }>('/jobs').catch(() => null)
    if (answer !== null) jobs.value = answer.jobs
  }
  for (const job of jobs.value) {
    const then = mine.get(job.id)
    if (then === undefined || job.state === 'running') continue
    mine.delete(job.id)
    toast(summary(job))
    then()
  }
  clearTimeout(timer)
  timer = setTimeout(() => void read(), jobs.value.some(({ state }) => state === 'running') ? EVERY : IDLE_EVERY)
}

export const followJobs = (): void => void read()

export const begin = async (path: string, body: object, then: () => void): Promise<void> => {
  const job = await post<BackgroundJob>(path, body)
  mine.set(job.id, then)
  jobs.value = [job, ...jobs.value]
  clearTimeout(timer)
  timer = setTimeout(() => void read(), 300)
}

export const askToStop = (job: BackgroundJob): void =>
  ask({
    title: 'Stop this job?',
    text: <p>What is done stays done. The rest is left as it is.</p>,
    action: 'Stop the job',
    danger: true,
    run: async () => {
      await post(`/jobs/${part(job.id)}/stop`)
      await read()
    },
  })
