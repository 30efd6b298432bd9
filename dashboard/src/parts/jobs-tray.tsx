/** The background jobs that run, on every page. */
import { askToStop, type BackgroundJob, jobs, summary } from '../background-jobs.tsx'
import { hrefOf } from '../route.ts'
import { refusal } from '../session.ts'
import { Action } from './basics.tsx'

export const JobProgress = ({ job: { done, total } }: { readonly job: BackgroundJob }) =>
  total !== null && total > 0 ? <progress max={total} value={done} aria-label="Progress of the job" /> : null

export const JobsTray = () => {
  const running = jobs.value.filter(({ state }) => state === 'running')
  if (running.length === 0) return null
  return (
    <section class="tray" aria-label="Background jobs">
      {running.map((job) => (
        <div key={job.id}>
          <p role="status">
            <a href={hrefOf('jobs')}>{summary(job)}</a>
          </p>
          <Action small label="Stop" of={summary(job)} refused={refusal('operate')} onClick={() => askToStop(job)} />
          <JobProgress job={job} />
        </div>
      ))}
    </section>
  )
}
