/** Background jobs: the running ones, and the results of the others. */
import { askToStop, type BackgroundJob, jobs, nameOf, summary } from '../background-jobs.tsx'
import { Action, ActionsHead, Ago, Head, Panel, ShortId } from '../parts/basics.tsx'
import { JobProgress } from '../parts/jobs-tray.tsx'
import { Empty } from '../parts/states.tsx'
import { taskHref } from '../route.ts'
import { refusal } from '../session.ts'
import { duration } from '../text/words.ts'

const SHOWN_REFUSED = 10

const Row = ({ job }: { readonly job: BackgroundJob }) => {
  const { startedAt, endedAt, by, state, report } = job
  return (
    <tr data-job={job.id} data-state={state}>
      <th scope="row">
        {nameOf(job)}
        {by && <span class="note">by {by}</span>}
      </th>
      <td class="outcome">
        <p>{summary(job)}</p>
        {state === 'running' && <JobProgress job={job} />}
        {report !== null && report.refused.length > 0 && (
          <details>
            <summary>Refused</summary>
            <ul>
              {report.refused.slice(0, SHOWN_REFUSED).map(({ id, error }) => (
                <li key={id}>
                  <a href={taskHref(id)}>
                    <ShortId id={id} />
                  </a>{' '}
                  {error.message}
                </li>
              ))}
            </ul>
          </details>
        )}
      </td>
      <td data-label="Started" class="time">
        <Ago at={startedAt} />
      </td>
      <td data-label="Took" class="time">
        {endedAt === null ? '–' : duration(Date.parse(endedAt) - Date.parse(startedAt))}
      </td>
      <td class="acts">
        {state === 'running' && (
          <Action small label="Stop" of={summary(job)} refused={refusal('operate')} onClick={() => askToStop(job)} />
        )}
      </td>
    </tr>
  )
}

export const Jobs = () => (
  <>
    <Head
      title="Jobs"
      note="Bulk actions run on the server while you use other pages. It remembers the last hundred until it restarts."
    />
    {jobs.value.length === 0 ? (
      <Empty title="No jobs">A replay, a purge, or an action on many tasks appears here.</Empty>
    ) : (
      <Panel flush>
        <table class="cards">
          <thead>
            <tr>
              <th scope="col">Job</th>
              <th scope="col">Outcome</th>
              <th scope="col" class="time">
                Started
              </th>
              <th scope="col" class="time">
                Took
              </th>
              <ActionsHead />
            </tr>
          </thead>
          <tbody>
            {jobs.value.map((job) => (
              <Row key={job.id} job={job} />
            ))}
          </tbody>
        </table>
      </Panel>
    )}
  </>
)
