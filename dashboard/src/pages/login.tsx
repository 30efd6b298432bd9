/** Asks for the server's token. */
import { useSignal } from '@preact/signals'
import { ApiError } from '../api.ts'
import { Field } from '../parts/field.tsx'
import { Mark } from '../parts/icons.tsx'
import { Failure } from '../parts/states.tsx'
import { logIn } from '../session.ts'

export const Login = () => {
  const token = useSignal('')
  const failed = useSignal<ApiError | null>(null)
  return (
    <main class="login">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          failed.value = null
          logIn(token.value.trim()).then(
            () => location.reload(),
            (thrown: unknown) => {
              if (thrown instanceof ApiError) failed.value = thrown
            },
          )
        }}
      >
        <Mark />
        <h1>Holdfast</h1>
        <p class="note">Enter the token with which this server was started.</p>
        <Field label="Token" type="password" value={token} required autoFocus />
        {failed.value && <Failure error={failed.value} />}
        <button type="submit" class="primary">
          Open the dashboard
        </button>
      </form>
    </main>
  )
}
