/** The questions before a queue, or a group of one, is paused or resumed. */
import { signal } from '@preact/signals'
import { part, post } from './api.ts'
import { ask } from './parts/dialogs/ask.tsx'
import { Field } from './parts/field.tsx'
import { toast } from './parts/toast.tsx'

export const askToPause = (queue: string, reload: () => void): void => {
  const reason = signal('')
  const group = signal('')
  ask({
    title: `Pause ${queue}?`,
    text: (
      <p>Workers stop claiming from it within 5 seconds. Running tasks continue, and new tasks can be submitted.</p>
    ),
    Body: () => (
      <div class="fields">
        <Field label="Reason" hint="shown to others" value={reason} />
        <Field label="Group" hint="only its tasks" value={group} />
      </div>
    ),
    action: 'Pause the queue',
    danger: true,
    run: async () => {
      const only = group.value.trim()
      await post(`/queues/${part(queue)}/pause`, {
        ...(reason.value && { reason: reason.value }),
        ...(only && { group: only }),
      })
      toast(only ? `Group ${only} of ${queue} is paused` : `${queue} is paused`)
      reload()
    },
  })
}

export const askToResume = (queue: string, reload: () => void, group?: string): void =>
  ask({
    title: group === undefined ? `Resume ${queue}?` : `Resume group ${group} of ${queue}?`,
    text: <p>Workers claim its tasks again.</p>,
    action: group === undefined ? 'Resume the queue' : 'Resume the group',
    run: async () => {
      await post(`/queues/${part(queue)}/resume`, group === undefined ? {} : { group })
      toast(`${group ?? queue} is resumed`)
      reload()
    },
  })
