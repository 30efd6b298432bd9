/** Every action asks for confirmation: one dialog for all, in the browser's modal element. */
import { signal } from '@preact/signals'
import type { ComponentChildren, FunctionComponent } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { ApiError } from '../api.ts'
import { Failure } from './states.tsx'

export interface Question {
  readonly title: string
  readonly text?: ComponentChildren
  /** Fields and previews, as a component that can change while the dialog is open. */
  readonly Body?: FunctionComponent
  /** Absent if the dialog only informs. */
  readonly action?: string
  readonly danger?: boolean
  /** The dialog closes when it resolves, and shows the error when it rejects. */
  readonly run?: () => Promise<unknown>
}

const asking = signal<Question | null>(null)
const isBusy = signal(false)
const failed = signal<ApiError | null>(null)

let asked = 0

export const ask = (question: Question): void => {
  asked++
  failed.value = null
  isBusy.value = false
  asking.value = question
}

const answer = async (question: Question): Promise<void> => {
  if (isBusy.value) return
  isBusy.value = true
  failed.value = null
  try {
    await question.run?.()
    if (asking.value === question) asking.value = null
  } catch (thrown) {
    failed.value =
      thrown instanceof ApiError ? thrown : new ApiError(0, 'NOT_DONE', String((thrown as Error).message), '')
  } finally {
    isBusy.value = false
  }
}

/** Each question gets a new dialog. */
export const AskDialog = () => asking.value && <QuestionDialog key={asked} question={asking.value} />

const QuestionDialog = ({ question }: { readonly question: Question }) => {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    dialog.current?.showModal()
  }, [])
  const { title, text, Body, action, danger = false } = question
  return (
    <dialog
      ref={dialog}
      aria-labelledby="ask-title"
      onClose={() => {
        // This event is asynchronous: the next question may already be open.
        if (asking.value === question) asking.value = null
      }}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void answer(question)
        }}
      >
        <h2 id="ask-title">{title}</h2>
        {text && <div class="text">{text}</div>}
        {Body && <Body />}
        {failed.value && <Failure error={failed.value} />}
        <footer>
          <button type="button" class="plain" onClick={() => dialog.current?.close()}>
            {action === undefined ? 'Close' : 'Never mind'}
          </button>
          {action && (
            <button type="submit" class={danger ? 'danger solid' : 'primary'} disabled={isBusy.value}>
              {isBusy.value ? 'Working…' : action}
            </button>
          )}
        </footer>
      </form>
    </dialog>
  )
}
