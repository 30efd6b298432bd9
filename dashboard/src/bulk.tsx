/** One action on the rows that are ticked, or on all tasks that match. */
import { signal } from '@preact/signals'
import { post } from './api.ts'
import { begin } from './background-jobs.tsx'
import { ShortId } from './parts/basics.tsx'
import { ask } from './parts/dialogs/ask.tsx'
import { number, plural } from './text/words.ts'
import type { Task } from './types.ts'

interface Preview {
  readonly matched: number | null
  readonly capped: boolean
  readonly sample: readonly Task[]
  readonly confirm: string
}

export const BULK_ACTIONS = ['retry', 'replay', 'cancel', 'archive', 'delete'] as const
export type BulkAction = (typeof BULK_ACTIONS)[number]

export const BULK_WORDS: Readonly<Record<BulkAction, string>> = {
  retry: 'Retry',
  replay: 'Replay',
  cancel: 'Cancel',
  archive: 'Archive',
  delete: 'Delete',
}

const NOTES: Readonly<Record<BulkAction, string>> = {
  retry:
    'They become due at once. A failed task uses one of its remaining retries; a running one is taken from its worker.',
  replay: 'Dead letters run again with a new retry budget. Other tasks refuse.',
  cancel: 'Tasks that wait will not run; running ones are asked to stop. Ended tasks refuse.',
  archive: 'They are hidden from default lists. Tasks that have not ended refuse.',
  delete:
    'This removes the tasks, their histories and their keys. It cannot be undone. Tasks that have not ended refuse.',
}

const isDangerous = (action: BulkAction): boolean => action === 'delete' || action === 'cancel'

export const askForChosen = (action: BulkAction, ids: readonly string[], then: () => void): void =>
  ask({
    title: `${BULK_WORDS[action]} ${plural(ids.length, 'task')}?`,
    text: <p>{NOTES[action]}</p>,
    action: `${BULK_WORDS[action]} ${plural(ids.length, 'task')}`,
    danger: isDangerous(action),
    run: () => begin('/tasks/bulk', { action, ids }, then),
  })

/** Which action, then what it would affect. */
export const askForAll = (query: Readonly<Record<string, string>>, then: () => void): void => {
  const chosen = signal<BulkAction>('retry')
  ask({
    title: 'Act on all tasks that match',
    Body: () => (
      <fieldset class="choices">
        <legend class="unseen">Action</legend>
        {BULK_ACTIONS.map((action) => (
          <label class="check" key={action}>
            <input
              type="radio"
              name="action"
              checked={chosen.value === action}
              onChange={() => {
                chosen.value = action
              }}
            />
            {BULK_WORDS[action]}
          </label>
        ))}
        <p class="note">{NOTES[chosen.value]}</p>
      </fieldset>
    ),
    action: 'Preview',
    run: async () => {
      const action = chosen.value
      const preview = await post<Preview>('/tasks/bulk/preview', { action, query })
      return () => confirmAll(action, query, preview, then)
    },
  })
}

const confirmAll = (
  action: BulkAction,
  query: Readonly<Record<string, string>>,
  { matched, capped, sample, confirm }: Preview,
  then: () => void,
): void =>
  ask({
    title: `${BULK_WORDS[action]} all that match?`,
    text: (
      <>
        <p>
          {matched === null ? (
            'A search is not counted. It affects tasks such as:'
          ) : (
            <>
              <b>
                {number(matched)}
                {capped && '+'}
              </b>{' '}
              {matched === 1 ? 'task' : 'tasks'}
              {sample.length > 0 && ', such as:'}
            </>
          )}
        </p>
        <ul class="sample">
          {sample.map((task) => (
            <li key={task.id}>
              {task.type} <ShortId id={task.id} />
            </li>
          ))}
        </ul>
        <p>{NOTES[action]}</p>
      </>
    ),
    action:
      matched === null || capped
        ? `${BULK_WORDS[action]} them all`
        : `${BULK_WORDS[action]} ${plural(matched, 'task')}`,
    danger: isDangerous(action),
    run: () => begin('/tasks/bulk', { action, query, confirm }, then),
  })
