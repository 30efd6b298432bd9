/** The actions on a task, by its status. Each asks for confirmation. */
import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { part, post, remove } from '../../api.ts'
import { go, hrefOf, taskHref } from '../../route.ts'
import type { Task } from '../../types.ts'
import { Check, Field } from '../field.tsx'
import { toast } from '../toast.tsx'
import { ask } from './ask.tsx'
import { parsedJson } from './parsed-json.ts'
import { askToSubmit } from './submit.tsx'

export interface TaskAction {
  readonly label: string
  readonly tone: 'primary' | 'danger' | 'plain'
  readonly right: 'operate' | 'submit' | 'signal'
  readonly act: () => void
}

type Asks = (task: Task, reload: () => void) => void

const pathOf = (task: Task, verb: string): string => `/tasks/${part(task.id)}/${verb}`

const asksFor =
  (verb: string, title: string, text: ComponentChildren, action: string, done: string, danger = false): Asks =>
  (task, reload) =>
    ask({
      title,
      text: <p>{text}</p>,
      action,
      danger,
      run: async () => {
        await post(pathOf(task, verb))
        toast(done)
        reload()
      },
    })

const cancel: Asks = (task, reload) => {
  const reason = signal('')
  const isRunning = task.status === 'running'
  ask({
    title: 'Cancel this task?',
    text: (
      <p>
        {isRunning
          ? 'Its handler is asked to stop. If it completes anyway, the task is completed.'
          : 'It will not run. It can be retried later.'}
      </p>
    ),
    Body: () => <Field label="Reason" hint="kept in the history" value={reason} />,
    action: isRunning ? 'Ask it to stop' : 'Cancel the task',
    danger: true,
    run: async () => {
      // It may have begun, or ended, since the dialog was opened.
      const { status } = await post<Task>(pathOf(task, 'cancel'), reason.value ? { reason: reason.value } : {})
      toast(status === 'running' ? 'Asked to stop' : 'Cancelled')
      reload()
    },
  })
}

const replay: Asks = (task, reload) => {
  const asNew = signal(false)
  ask({
    title: 'Replay this task?',
    text: <p>It runs again with a new retry budget and without its old expiry.</p>,
    Body: () => <Check label="As a new task with a new id; this one is archived" value={asNew} />,
    action: 'Replay',
    run: async () => {
      const { id } = await post<Task>(pathOf(task, 'replay'), asNew.value ? { asNew: true } : {})
      toast('Replayed')
      if (id !== task.id) return () => go(taskHref(id))
      reload()
    },
  })
}

const discard: Asks = (task) =>
  ask({
    title: 'Permanently delete this task?',
    text: <p>This removes the task, its history and its idempotency key. It cannot be undone.</p>,
    action: 'Delete',
    danger: true,
    run: async () => {
      await remove(`/tasks/${part(task.id)}`)
      toast('Deleted')
      return () => go(hrefOf('tasks'))
    },
  })

const again: Asks = ({ type, queue, input, encoding, payloads }) =>
  askToSubmit({
    type,
    queue,
    ...(encoding === 'json' && payloads === 'shown' && { input: JSON.stringify(input, null, 2) }),
  })

const retry = asksFor(
  'retry',
  'Retry this task?',
  'It becomes due at once. A failed task uses one of its remaining retries.',
  'Retry',
  'It will run again',
)
const takeAway = asksFor(
  'retry',
  'Revoke its lease?',
  'The worker loses the lease and its result is refused. The task becomes due at once and uses a retry.',
  'Retry elsewhere',
  'The lease was revoked',
  true,
)
const runNow = asksFor(
  'run-now',
  'Run this task now?',
  'It becomes due at once and uses no retry.',
  'Run now',
  'It is due',
)
const archive = asksFor('archive', 'Archive this task?', 'It is hidden from default lists.', 'Archive', 'Archived')
const unarchive = asksFor(
  'unarchive',
  'Unarchive this task?',
  'It returns to its previous status.',
  'Unarchive',
  'Unarchived',
)
const expire = asksFor('expire', 'Expire this task now?', 'It will never run.', 'Expire', 'Expired', true)

const signalTo: Asks = (task, reload) => {
  const name = signal(task.parked?.signal ?? '')
  const value = signal('{}')
  ask({
    title: 'Send a signal?',
    text: <p>A task that waits for it is due at once. Otherwise it is kept until a step asks for it.</p>,
    Body: () => (
      <div class="fields">
        <Field label="Signal" value={name} required autoFocus />
        <div class="wide">
          <Field label="Value" hint="JSON" rows={4} value={value} />
        </div>
      </div>
    ),
    action: 'Send the signal',
    run: async () => {
      const text = value.value.trim()
      await post(pathOf(task, 'signal'), {
        name: name.value.trim(),
        ...(text !== '' && { value: parsedJson(text, 'value') }),
      })
      toast('Sent')
      reload()
    },
  })
}

export const actionsOf = (task: Task, reload: () => void): readonly TaskAction[] => {
  const offer = (
    label: string,
    asks: Asks,
    tone: TaskAction['tone'] = 'plain',
    right: TaskAction['right'] = 'operate',
  ): TaskAction => ({
    label,
    tone,
    right,
    act: () => asks(task, reload),
  })
  const { status, retryCount, maxRetries } = task
  const canRetry = status === 'cancelled' || (status === 'failed' && (maxRetries === null || retryCount < maxRetries))
  const hasEnded = status !== 'pending' && status !== 'running'
  return [
    status === 'failed' && offer('Replay', replay, 'primary'),
    canRetry && offer('Retry', retry),
    status === 'running' && offer('Retry elsewhere', takeAway),
    (task.view === 'scheduled' || task.view === 'retrying') && offer('Run now', runNow),
    !hasEnded && offer('Send signal', signalTo, task.parked?.kind === 'signal' ? 'primary' : 'plain', 'signal'),
    status === 'pending' && offer('Expire', expire),
    hasEnded && offer('Submit again', again, 'plain', 'submit'),
    hasEnded && status !== 'archived' && offer('Archive', archive),
    status === 'archived' && offer('Unarchive', unarchive),
    !hasEnded && offer('Cancel', cancel, 'danger'),
    hasEnded && offer('Delete', discard, 'danger'),
  ].filter((one) => one !== false)
}
