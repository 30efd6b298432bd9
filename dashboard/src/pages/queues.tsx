/** Every queue with its counts; pause and resume. */
import { signal } from '@preact/signals'
import { part, post } from '../api.ts'
import { COUNTED, shownCount, useQueues } from '../counted.ts'
import { ask } from '../parts/ask.tsx'
import { Action, Head, Panel } from '../parts/basics.tsx'
import { Field } from '../parts/field.tsx'
import { QueueBar } from '../parts/queue-bar.tsx'
import { Empty, Loaded } from '../parts/states.tsx'
import { toast } from '../parts/toast.tsx'
import { hrefOf } from '../route.ts'
import { refusal } from '../session.ts'
import type { Queue } from '../types.ts'

const askToPause = (queue: string, reload: () => void): void => {
  const reason = signal('')
  ask({
    title: `Pause ${queue}?`,
    text: (
      <p>Workers stop claiming from it within 5 seconds. Running tasks continue, and new tasks can be submitted.</p>
    ),
    Body: () => <Field label="Reason" hint="shown to others" value={reason} />,
    action: 'Pause the queue',
    danger: true,
    run: async () => {
      await post(`/queues/${part(queue)}/pause`, reason.value ? { reason: reason.value } : {})
      toast(`${queue} is paused`)
      reload()
    },
  })
}

const askToResume = (queue: string, reload: () => void): void =>
  ask({
    title: `Resume ${queue}?`,
    text: <p>Workers claim tasks from it again.</p>,
    action: 'Resume the queue',
    run: async () => {
      await post(`/queues/${part(queue)}/resume`)
      toast(`${queue} is resumed`)
      reload()
    },
  })

const Row = ({ queue, reload }: { readonly queue: Queue; readonly reload: () => void }) => {
  const name = queue.queue
  return (
    <tr data-queue={name}>
      <th scope="row">
        <a href={hrefOf('tasks', { queue: name })} data-row>
          {name}
        </a>
        {queue.paused && <span class="tag warn">paused</span>}
        <QueueBar queue={queue} />
      </th>
      {COUNTED.map(([column, label, view]) => {
        const { text, title } = shownCount([queue], column)
        return (
          <td key={column} class="number" data-label={label}>
            <a
              href={hrefOf('tasks', { queue: name, status: view })}
              class={queue[column] === 0 ? 'none' : ''}
              title={title}
            >
              {text}
            </a>
          </td>
        )
      })}
      <td class="acts">
        {queue.paused ? (
          <Action
            small
            label="Resume"
            of={name}
            refused={refusal('operate')}
            onClick={() => askToResume(name, reload)}
          />
        ) : (
          <Action small label="Pause" of={name} refused={refusal('operate')} onClick={() => askToPause(name, reload)} />
        )}
      </td>
    </tr>
  )
}

export const Queues = () => {
  const read = useQueues('/queues')
  return (
    <>
      <Head title="Queues" note="Counts marked + are lower bounds." />
      <Loaded of={read}>
        {({ queues: counted }) =>
          counted.length === 0 ? (
            <Empty title="No queues yet">A queue appears when the first task is submitted to it.</Empty>
          ) : (
            <Panel flush>
              <table class="cards">
                <thead>
                  <tr>
                    <th scope="col">Queue</th>
                    {COUNTED.map(([name, label]) => (
                      <th scope="col" class="number" key={name}>
                        {label}
                      </th>
                    ))}
                    <th scope="col">
                      <span class="unseen">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {counted.map((queue) => (
                    <Row key={queue.queue} queue={queue} reload={read.reload} />
                  ))}
                </tbody>
              </table>
            </Panel>
          )
        }
      </Loaded>
    </>
  )
}
