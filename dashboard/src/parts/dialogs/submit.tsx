/** The dialog that submits a task. */
import { signal } from '@preact/signals'
import { post } from '../../api.ts'
import { queues } from '../../live.ts'
import { go, taskHref } from '../../route.ts'
import type { Task } from '../../types.ts'
import { Field } from '../field.tsx'
import { toast } from '../toast.tsx'
import { ask } from './ask.tsx'
import { parsedJson } from './parsed-json.ts'

interface Prefilled {
  readonly type?: string
  readonly queue?: string
  readonly input?: string
}

export const askToSubmit = ({ type = '', queue = 'default', input = '{}' }: Prefilled = {}): void => {
  const fields = {
    type: signal(type),
    queue: signal(queue),
    input: signal(input),
    key: signal(''),
    delay: signal(''),
    ttl: signal(''),
    priority: signal(''),
    tags: signal(''),
  }
  const Body = () => (
    <div class="fields">
      <Field label="Type" value={fields.type} placeholder="send_reminder" required autoFocus />
      <Field label="Queue" value={fields.queue} list="known-queues" required />
      <datalist id="known-queues">
        {(queues.value ?? []).map(({ queue: name }) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <div class="wide">
        <Field label="Input" hint="JSON" value={fields.input} rows={5} required />
      </div>
      <details class="wide">
        <summary>More options</summary>
        <div class="fields">
          <Field label="Delay" hint="30s, 5m, 1h" value={fields.delay} />
          <Field label="Expires after" hint="30s, 5m, 1h" value={fields.ttl} />
          <Field label="Priority" hint="−1000 to 1000" type="number" value={fields.priority} />
          <Field label="Idempotency key" value={fields.key} />
          <div class="wide">
            <Field label="Tags" hint="name=value, name=value" value={fields.tags} />
          </div>
        </div>
      </details>
    </div>
  )
  ask({
    title: 'Submit a task',
    Body,
    action: 'Submit',
    run: async () => {
      const { key, delay, ttl, priority, tags } = fields
      const task = await post<Task>('/tasks', {
        type: fields.type.value.trim(),
        queue: fields.queue.value.trim(),
        input: parsedJson(fields.input.value),
        ...(key.value && { idempotencyKey: key.value }),
        ...(delay.value && { delay: delay.value.trim() }),
        ...(ttl.value && { ttl: ttl.value.trim() }),
        ...(priority.value && { priority: Number(priority.value) }),
        ...(tags.value && { tags: tagsOf(tags.value) }),
      })
      toast('Submitted')
      return () => go(taskHref(task.id))
    },
  })
}

const tagsOf = (text: string): Record<string, string> =>
  Object.fromEntries(
    text.split(',').map((one) => {
      const at = one.indexOf('=')
      if (at < 1) throw new Error('A tag must be name=value')
      return [one.slice(0, at).trim(), one.slice(at + 1).trim()]
    }),
  )
