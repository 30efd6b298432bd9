/** A labelled field bound to a signal. */
import type { Signal } from '@preact/signals'
import { useId } from 'preact/hooks'

interface FieldProps {
  readonly label: string
  readonly value: Signal<string>
  readonly hint?: string
  readonly placeholder?: string
  readonly required?: boolean
  readonly rows?: number
  readonly list?: string
  readonly type?: 'text' | 'number' | 'password'
  readonly autoFocus?: boolean
}

export const Field = ({ label, value, hint, rows, list, type = 'text', ...rest }: FieldProps) => {
  const id = useId()
  const given = {
    ...rest,
    id,
    value: value.value,
    spellcheck: false,
    onInput: (event: { readonly currentTarget: HTMLInputElement | HTMLTextAreaElement }): void => {
      value.value = event.currentTarget.value
    },
  }
  return (
    <div class="field">
      <label for={id}>
        {label} {hint && <small>{hint}</small>}
      </label>
      {rows !== undefined ? (
        <textarea rows={rows} {...given} />
      ) : type === 'text' ? (
        <input type="text" autocomplete="off" {...given} {...(list !== undefined && { list })} />
      ) : (
        <input type={type} autocomplete="off" {...given} />
      )}
    </div>
  )
}

export const Check = ({ label, value }: { readonly label: string; readonly value: Signal<boolean> }) => (
  <label class="check">
    <input
      type="checkbox"
      checked={value.value}
      onChange={(event) => {
        value.value = event.currentTarget.checked
      }}
    />
    {label}
  </label>
)
