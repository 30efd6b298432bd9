/** Every action asks for confirmation: one dialog for all, in the browser's modal element. */
import { signal } from '@preact/signals'
import type { ComponentChildren, FunctionComponent } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { ApiError } from '../../api.ts'
import { route } from '../../route.ts'
import { Failure } from '../states.tsx'
import { toast } from '../toast.tsx'

export interface Question {
  readonly title: string
  readonly text?: ComponentChildren
  /** Fields and previews, as a component that can change while the dialog is open. */
  readonly Body?: FunctionComponent
  /** Absent if the dialog only informs. */
  readonly action?: string
  readonly danger?: boolean
  /**
   * The dialog closes when it resolves, and shows the error when it rejects. If it resolves to a function, that function is called, unless the user
   * has closed the dialog in the meantime.
   */
  readonly run?: () => Promise<unknown>
}

const asking = signal<Question | null>(null)
const isBusy = signal(false)
const failed = signal<ApiError | null>(null)

/** Incremented with each question and each page. */
let asked = 0

// A question about a task must not stand above another one.
route.subscribe(() => {
  asked++
  asking.value = null
})

/** Asks a question that is still being prepared. Drops it if the user has moved to another question or page in the meantime. */
export const askWhenKnown = async (question: Promise<Question | null>): Promise<void> => {
  asked++
  const mine = asked
  const known = await question
  if (known !== null && mine === asked) ask(known)
}

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
  // The dialog may have been closed while the action ran, and another one may be open.
  const isOpen = (): boolean => asking.value === question
  try {
    const next = await question.run?.()
    if (!isOpen()) return
    asking.value = null
    if (typeof next === 'function') next()
  } catch (thrown) {
    const error =
      thrown instanceof ApiError ? thrown : new ApiError(0, 'NOT_DONE', String((thrown as Error).message), '')
    if (isOpen()) failed.value = error
    else toast(error.message)
  } finally {
    if (isOpen()) isBusy.value = false
  }
}

/** A key that is held down must not answer the question that it has opened. */
const refuseHeldEnter = (event: KeyboardEvent): void => {
  if (event.key === 'Enter' && event.repeat && !(event.target instanceof HTMLTextAreaElement)) event.preventDefault()
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
        onKeyDown={refuseHeldEnter}
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
