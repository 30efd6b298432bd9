/** One task: its fields, why it is in its state, input and output, and its history. */
import { Action, Ago, At, Copy, Fact, Head, Panel, Pill } from '../parts/basics.tsx'
import { percentOf } from '../parts/charts/percent-bar.tsx'
import { Timeline } from '../parts/charts/timeline.tsx'
import { actionsOf } from '../parts/dialogs/task-actions.tsx'
import { Json } from '../parts/json.tsx'
import { Loaded } from '../parts/states.tsx'
import { useResource } from '../resource.ts'
import { hrefOf, route, taskHref } from '../route.ts'
import { refusal } from '../session.ts'
import { duration } from '../text/words.ts'
import type { ErrorCause, Task, Why } from '../types.ts'

const outOf = (count: number, most: number | null): string =>
  most === null ? `${count}, no limit` : `${count} of ${most}`

const Link = ({ id }: { readonly id: string }) => (
  <a href={taskHref(id)}>
    <code>{id}</code>
  </a>
)

const AtAndAgo = ({ at }: { readonly at: string }) => (
  <>
    <At at={at} />{' '}
    <span class="note">
      (<Ago at={at} />)
    </span>
  </>
)

/** When it is due, when its lease ends, and when it ended or will expire. */
const Times = ({ task }: { readonly task: Task }) => (
  <>
    {task.status === 'pending' && !task.parked && (
      <Fact name="Due">
        <AtAndAgo at={task.availableAt} />
      </Fact>
    )}
    {task.lease && (
      <Fact name="Worker">
        <a href={hrefOf('tasks', { status: 'running', workerId: task.lease.workerId })}>{task.lease.workerId}</a>{' '}
        <span class="note">
          (lease ends <Ago at={task.lease.expiresAt} />)
        </span>
      </Fact>
    )}
    {task.completedAt && (
      <Fact name="Ended">
        <AtAndAgo at={task.completedAt} />
      </Fact>
    )}
    {task.expiresAt && (
      <Fact name="Expires">
        <AtAndAgo at={task.expiresAt} />
      </Fact>
    )}
  </>
)

/** The key and the schedule that it comes from, and its replays. */
const Origins = ({ task }: { readonly task: Task }) => (
  <>
    {task.idempotencyKey && (
      <Fact name="Key">
        <code>{task.idempotencyKey}</code>
      </Fact>
    )}
    {task.scheduleId && (
      <Fact name="Schedule">
        <a href={hrefOf(`schedules/${encodeURIComponent(task.scheduleId)}`)}>{task.scheduleId}</a>
      </Fact>
    )}
    {task.replayOf && (
      <Fact name="Replay of">
        <Link id={task.replayOf} />
      </Fact>
    )}
    {task.replayedAs && (
      <Fact name="Replayed as">
        <Link id={task.replayedAs} />
      </Fact>
    )}
    {task.replayCount > 0 && <Fact name="Replays">{task.replayCount}</Fact>}
  </>
)

const Facts = ({ task }: { readonly task: Task }) => (
  <dl class="facts">
    <Fact name="Type">
      <a href={hrefOf(`types/${encodeURIComponent(task.type)}`)}>{task.type}</a>
    </Fact>
    <Fact name="Queue">
      <a href={hrefOf(`queues/${encodeURIComponent(task.queue)}`)}>{task.queue}</a>
    </Fact>
    {task.group && (
      <Fact name="Group">
        <a href={hrefOf('tasks', { queue: task.queue, group: task.group })}>{task.group}</a>
      </Fact>
    )}
    {task.parked && (
      <Fact name="Parked">
        {task.parked.kind === 'sleep' ? 'sleeps' : `waits for signal ${task.parked.signal ?? ''}`}
        {task.parked.until && (
          <>
            {' '}
            until <At at={task.parked.until} />
          </>
        )}
      </Fact>
    )}
    <Fact name="Created">
      <AtAndAgo at={task.createdAt} />
    </Fact>
    <Fact name="Attempts">{task.attempts}</Fact>
    <Fact name="Retries">{outOf(task.retryCount, task.maxRetries)}</Fact>
    <Times task={task} />
    {(task.rescheduleCount > 0 || task.maxReschedules !== null) && (
      <Fact name="Reschedules">{outOf(task.rescheduleCount, task.maxReschedules)}</Fact>
    )}
    {task.priority !== 0 && <Fact name="Priority">{task.priority}</Fact>}
    <Fact name="Timeout">{task.timeout === null ? 'none' : duration(task.timeout)}</Fact>
    <Origins task={task} />
    {Object.entries(task.tags ?? {}).length > 0 && (
      <Fact name="Tags">
        {Object.entries(task.tags ?? {}).map(([name, value]) => (
          <a class="tag" key={name} href={hrefOf('tasks', { tag: `${name}=${value}` })}>
            {name}={value}
          </a>
        ))}
      </Fact>
    )}
  </dl>
)

const Payload = ({ title, value, task }: { readonly title: string; readonly value: unknown; readonly task: Task }) => (
  <Panel
    title={title}
    name={title.toLowerCase()}
    aside={task.payloads !== 'withheld' && <Copy text={JSON.stringify(value)} what={`the ${title.toLowerCase()}`} />}
  >
    {task.payloads === 'withheld' ? (
      <p class="note">Your token does not allow you to see payloads.</p>
    ) : (
      <>
        {task.payloads === 'redacted' && <p class="note">Some values may be redacted by the server.</p>}
        <Json value={value} />
      </>
    )}
  </Panel>
)

const Progress = ({ value }: { readonly value: unknown }) => {
  const percent = percentOf(value)
  return (
    <Panel title="Progress" name="progress">
      {percent !== null && <progress max={100} value={percent} aria-label="Progress" />}
      <Json value={value} />
    </Panel>
  )
}

const LastError = ({ task }: { readonly task: Task }) => {
  const { lastError } = task
  if (lastError === null) return null
  return (
    <Panel
      title={task.status === 'failed' ? 'Died of' : 'Last error'}
      name="error"
      aside={
        <span class="note">
          attempt {lastError.attempt}, <Ago at={lastError.at} />
        </span>
      }
    >
      <ErrorText error={lastError} />
    </Panel>
  )
}

/** An error with its causes below it. */
const ErrorText = ({ error, before }: { readonly error: ErrorCause; readonly before?: string }) => (
  <>
    <p class="bad">
      {before && `${before} `}
      <b>{error.name}</b>
      {error.message && `: ${error.message}`}
      {error.code && !error.message.includes(error.code) && ` (${error.code})`}
    </p>
    {error.detail && <p>{error.detail}</p>}
    {error.stack && (
      <details>
        <summary>Stack</summary>
        <pre>{error.stack}</pre>
      </details>
    )}
    {error.errors?.map((part, i) => (
      <ErrorText error={part} before="Part" key={i} />
    ))}
    {error.cause && <ErrorText error={error.cause} before="Caused by" />}
  </>
)

const INSTANT = /(\d{4}-\d\d-\d\dT[\d:.]+Z)/
/** A relative time, in the words of the sentence. */
const AWAY = /\((?:in )?(?:\d+(?:ms|s|m|h|d) ?)+(?:ago)?\)/g

/** The sentence with its instants in the zone of the page, and its durations formatted as elsewhere. */
const Sentence = ({ text }: { readonly text: string }) => (
  <>
    {text
      .replace(AWAY, (away) => away.replace(/(\d)(ms|[smhd])/g, '$1 $2'))
      .split(INSTANT)
      .map((part, i) => (i % 2 === 1 ? <At at={part} key={i} /> : part))}
  </>
)

const WhyLine = ({ task }: { readonly task: Task }) => {
  const { data } = useResource<Why>(`/tasks/${encodeURIComponent(task.id)}/why`, {
    query: {},
    follow: new Set([task.id]),
    ...(task.status === 'pending' && { every: 3_000 }),
  })
  if (data === null) return null
  return (
    <p class="why" data-reason={data.reason} data-view={task.view}>
      {data.sentence === null ? `The reason: ${data.reason}.` : <Sentence text={data.sentence} />}
      {task.cancelRequestedAt && task.status === 'running' && (
        <>
          {' '}
          It was asked to stop <Ago at={task.cancelRequestedAt} />, and ends when its handler does.
        </>
      )}
    </p>
  )
}

const Whole = ({ task, reload }: { readonly task: Task; readonly reload: () => void }) => (
  <>
    <Head
      title={
        <>
          {task.type} <Pill view={task.view} />
        </>
      }
      note={
        <>
          <code>{task.id}</code> <Copy text={task.id} what="the id" />
        </>
      }
    >
      {actionsOf(task, reload).map(({ label, tone, right, act }) => (
        <Action key={label} label={label} tone={tone} refused={refusal(right)} onClick={act} />
      ))}
    </Head>
    <WhyLine task={task} />
    <div class="task">
      <div>
        <Panel title="Timeline" name="timeline">
          <Timeline task={task} />
        </Panel>
      </div>
      <div>
        <Panel title="About">
          <Facts task={task} />
        </Panel>
        <LastError task={task} />
        {task.progress !== null && <Progress value={task.progress} />}
        <Payload title="Input" value={task.input} task={task} />
        {task.outputError !== null && (
          <p class="bad">Output error: {task.outputError || 'it could not be stored or did not match its schema'}</p>
        )}
        {task.status === 'completed' && <Payload title="Output" value={task.output} task={task} />}
      </div>
    </div>
  </>
)

export const TaskPage = () => {
  const id = route.value.rest
  const path = `/tasks/${encodeURIComponent(id)}`
  // Progress is not a move and is not in the stream, so it is polled.
  const task = useResource<Task>(path, { follow: new Set([id]), every: 2_000 })
  return (
    <>
      {task.data === null && <Head title="Task" note={<code>{id}</code>} />}
      <Loaded of={task}>{(data) => <Whole task={data} reload={task.reload} />}</Loaded>
    </>
  )
}
