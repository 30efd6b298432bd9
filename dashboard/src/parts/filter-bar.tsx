/** The filters above the list of tasks, and those that were saved. */
import { signal, useSignal } from '@preact/signals'
import { useLayoutEffect } from 'preact/hooks'
import { useCharts } from '../charts-read.ts'
import { type Filters, forgetFilter, SINCE, saved, saveFilter, withFilter } from '../filters.ts'
import { queues } from '../live.ts'
import { go, hrefOf } from '../route.ts'
import type { View } from '../types.ts'
import { ask } from './dialogs/ask.tsx'
import { Field } from './field.tsx'

const VIEWS: readonly View[] = [
  'ready',
  'running',
  'scheduled',
  'retrying',
  'parked',
  'completed',
  'dead',
  'cancelled',
  'expired',
  'archived',
]

export const Views = ({ filters }: { readonly filters: Filters }) => (
  <ul class="views" aria-label="Status">
    {[undefined, ...VIEWS].map((view) => (
      <li key={view ?? ''}>
        <a
          href={withFilter(filters, 'status', view)}
          data-view={view}
          aria-current={filters['status'] === view ? 'true' : undefined}
        >
          {view ?? 'all'}
        </a>
      </li>
    ))}
  </ul>
)

const CHIPS: Readonly<Record<string, string>> = {
  tag: 'tag',
  workerId: 'worker',
  group: 'group',
  text: 'search',
  error: 'error',
}

const askToSave = (filters: Filters): void => {
  const name = signal('')
  ask({
    title: 'Save this filter',
    text: <p>It is kept in this browser.</p>,
    Body: () => <Field label="Name" value={name} required autoFocus />,
    action: 'Save',
    run: async () => saveFilter(name.value.trim(), filters),
  })
}

interface ChoiceProps {
  readonly label: string
  readonly value: string
  readonly options: readonly (readonly [value: string, text: string])[]
  readonly onChange: (value: string) => void
}

const Choice = ({ label, value, options, onChange }: ChoiceProps) => (
  <label>
    <span>{label}</span>
    <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
      {options.map(([one, text]) => (
        <option key={one} value={one}>
          {text}
        </option>
      ))}
    </select>
  </label>
)

/** What is being typed is kept apart from the filter: the bar is drawn again whenever a count changes. */
const TypeField = ({ value, onChange }: { readonly value: string; readonly onChange: (value: string) => void }) => {
  const text = useSignal(value)
  useLayoutEffect(() => {
    text.value = value
  }, [value])
  return (
    <label>
      <span>Type</span>
      <input
        type="text"
        value={text.value}
        placeholder="all"
        list="known-types"
        spellcheck={false}
        onInput={(event) => {
          text.value = event.currentTarget.value
        }}
        onChange={() => onChange(text.value.trim())}
      />
    </label>
  )
}

export const FilterBar = ({ filters }: { readonly filters: Filters }) => {
  const known = (queues.value ?? []).map(({ queue }) => queue)
  const types = Object.keys(useCharts({}, '24h')?.types ?? {})
  const { queue = '', type = '', since = '' } = filters
  const { cursor: _, by: __, ...keepable } = filters
  const set = (name: string) => (value: string) => go(withFilter(filters, name, value))
  return (
    <div class="narrow">
      <Choice
        label="Queue"
        value={queue}
        onChange={set('queue')}
        options={[
          ['', 'all'],
          ...(queue === '' || known.includes(queue) ? known : [queue, ...known]).map((name) => [name, name] as const),
        ]}
      />
      <TypeField value={type} onChange={set('type')} />
      <datalist id="known-types">
        {types.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <Choice
        label="Created"
        value={since}
        onChange={set('since')}
        options={[['', 'any time'], ...Object.entries(SINCE).map(([name, [text]]) => [name, text] as const)]}
      />
      {Object.entries(CHIPS).map(
        ([name, label]) =>
          filters[name] && (
            <a key={name} class="chip" href={withFilter(filters, name, undefined)}>
              {label} <b>{filters[name]}</b>
              <span aria-hidden="true"> ×</span>
              <span class="unseen"> remove this filter</span>
            </a>
          ),
      )}
      {Object.keys(keepable).length > 0 && (
        <button type="button" class="quiet small" onClick={() => askToSave(keepable)}>
          Save filter
        </button>
      )}
      {saved.value.map(({ name, filters: of }) => (
        <span class="chip saved" key={name}>
          <a href={hrefOf('tasks', of)}>{name}</a>
          <button
            type="button"
            class="quiet"
            aria-label={`Forget the filter ${name}`}
            onClick={() => forgetFilter(name)}
          >
            ×
          </button>
        </span>
      ))}
    </div>
  )
}
