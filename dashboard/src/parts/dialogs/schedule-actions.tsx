/** What can be done with a schedule. Each asks for confirmation. */
import { type Signal, signal } from '@preact/signals'
import { useId } from 'preact/hooks'
import { part, patch, post, remove } from '../../api.ts'
import { go, hrefOf, taskHref } from '../../route.ts'
import { exactDuration } from '../../text/words.ts'
import type { Schedule, Task } from '../../types.ts'
import { Check, Field } from '../field.tsx'
import { toast } from '../toast.tsx'
import { ask } from './ask.tsx'
import { parsedJson } from './parsed-json.ts'

export const scheduleHref = (id: string): string => hrefOf(`schedules/${encodeURIComponent(id)}`)

export const askToSwitch = ({ id, paused }: Schedule, reload: () => void): void =>
  ask({
    title: paused ? `Resume ${id}?` : `Pause ${id}?`,
    text: (
      <p>
        {paused
          ? 'It fires again from its next slot on.'
          : 'No slot fires until it is resumed. Its tasks are not changed.'}
      </p>
    ),
    action: paused ? 'Resume the schedule' : 'Pause the schedule',
    danger: !paused,
    run: async () => {
      await post(`/schedules/${part(id)}/${paused ? 'resume' : 'pause'}`)
      toast(paused ? `${id} fires again` : `${id} is paused`)
      reload()
    },
  })

export const askToTrigger = ({ id }: Schedule): void =>
  ask({
    title: `Trigger ${id} now?`,
    text: <p>Creates one task now. Its slots stay as they are.</p>,
    action: 'Create one task',
    run: async () => {
      const task = await post<Task>(`/schedules/${part(id)}/trigger`)
      toast('Triggered')
      return () => go(taskHref(task.id))
    },
  })

export const askToDelete = ({ id }: Schedule): void =>
  ask({
    title: `Delete ${id}?`,
    text: <p>It does not fire any more. The tasks that it has created stay.</p>,
    action: 'Delete the schedule',
    danger: true,
    run: async () => {
      await remove(`/schedules/${part(id)}`)
      toast('Deleted')
      return () => go(hrefOf('schedules'))
    },
  })

type Kind = 'cron' | 'fixed-rate' | 'fixed-delay'

const KINDS: readonly (readonly [kind: Kind, label: string])[] = [
  ['cron', 'By calendar (cron)'],
  ['fixed-rate', 'At a fixed rate'],
  ['fixed-delay', 'After the last run has ended'],
]

interface Fields {
  readonly id: Signal<string>
  readonly type: Signal<string>
  readonly queue: Signal<string>
  readonly input: Signal<string>
  readonly kind: Signal<Kind>
  readonly cron: Signal<string>
  readonly timezone: Signal<string>
  readonly every: Signal<string>
  readonly allow: Signal<boolean>
  readonly catchUp: Signal<string>
}

interface ChoiceProps {
  readonly label: string
  readonly value: Signal<string>
  readonly options: readonly (readonly [value: string, label: string])[]
}

const Choice = ({ label, value, options }: ChoiceProps) => {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select
        id={id}
        value={value.value}
        onChange={(event) => {
          value.value = event.currentTarget.value
        }}
      >
        {options.map(([one, text]) => (
          <option key={one} value={one}>
            {text}
          </option>
        ))}
      </select>
    </div>
  )
}

const Form = ({
  fields,
  isNew,
  hasInput,
}: {
  readonly fields: Fields
  readonly isNew: boolean
  readonly hasInput: boolean
}) => (
  <div class="fields">
    {isNew && (
      <div class="wide">
        <Field label="Id" value={fields.id} placeholder="nightly-report" required autoFocus />
      </div>
    )}
    <Field label="Type" value={fields.type} placeholder="send_report" required />
    <Field label="Queue" value={fields.queue} placeholder="default" />
    <div class="wide">
      <Choice label="When" value={fields.kind as Signal<string>} options={KINDS} />
    </div>
    {fields.kind.value === 'cron' ? (
      <>
        <Field label="Cron" hint="minute hour day month weekday" value={fields.cron} placeholder="0 3 * * *" required />
        <Field label="Timezone" value={fields.timezone} placeholder="UTC" />
      </>
    ) : (
      <Field label="Interval" hint="30s, 5m, 1h" value={fields.every} required />
    )}
    <Choice
      label="Slots that were missed"
      value={fields.catchUp}
      options={[
        ['skip', 'are left out'],
        ['last', 'fire once'],
        ['all', 'fire all'],
      ]}
    />
    {hasInput && (
      <div class="wide">
        <Field label="Input" hint="JSON" rows={4} value={fields.input} required />
      </div>
    )}
    {fields.kind.value !== 'fixed-delay' && (
      <div class="wide">
        <Check label="Fires also while its last task has not ended" value={fields.allow} />
      </div>
    )}
  </div>
)

const timingOf = ({ kind, cron, timezone, every }: Fields): object =>
  kind.value === 'cron'
    ? { cron: cron.value.trim(), ...(timezone.value.trim() && { timezone: timezone.value.trim() }) }
    : { every: every.value.trim(), mode: kind.value }

/** Without a schedule: a new one. */
export const askForSchedule = (schedule: Schedule | null, then: () => void): void => {
  const hasInput = schedule === null || (schedule.payloads === 'shown' && schedule.encoding === 'json')
  const fields: Fields = {
    id: signal(''),
    type: signal(schedule?.type ?? ''),
    queue: signal(schedule?.options.queue ?? ''),
    input: signal(schedule === null || !hasInput ? '{}' : JSON.stringify(schedule.input, null, 2)),
    kind: signal<Kind>(schedule?.mode ?? 'cron'),
    cron: signal(schedule?.cron ?? ''),
    timezone: signal(schedule?.timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone),
    every: signal(schedule?.every ? exactDuration(schedule.every) : ''),
    allow: signal(schedule?.overlap === 'allow'),
    catchUp: signal(schedule?.catchUp ?? 'skip'),
  }
  ask({
    title: schedule === null ? 'New schedule' : `Change ${schedule.id}`,
    Body: () => <Form fields={fields} isNew={schedule === null} hasInput={hasInput} />,
    action: schedule === null ? 'Create the schedule' : 'Save the schedule',
    run: async () => {
      const { queue: _, ...options } = schedule?.options ?? {}
      const queue = fields.queue.value.trim()
      const body = {
        type: fields.type.value.trim(),
        ...timingOf(fields),
        overlap: fields.allow.value ? 'allow' : 'skip',
        catchUp: fields.catchUp.value,
        ...(hasInput && { input: parsedJson(fields.input.value) }),
        // Options whose values are hidden cannot be written back.
        ...((schedule === null || schedule.payloads === 'shown') && {
          options: { ...options, ...(queue && { queue }) },
        }),
      }
      const saved =
        schedule === null
          ? await post<Schedule>('/schedules', { id: fields.id.value.trim(), ...body })
          : await patch<Schedule>(`/schedules/${part(schedule.id)}`, body)
      toast(schedule === null ? 'Created' : 'Saved')
      then()
      return () => {
        if (schedule === null) go(scheduleHref(saved.id))
      }
    },
  })
}
