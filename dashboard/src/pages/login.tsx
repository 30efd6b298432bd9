/** Asks for the server's token. */
import { useSignal } from '@preact/signals'
import { ApiError } from '../api.ts'
import { Field } from '../parts/field.tsx'
import { Mark } from '../parts/icons.tsx'
import { Failure } from '../parts/states.tsx'
import { logIn } from '../session.ts'

export const Login = ({ isStaleLink }: { readonly isStaleLink: boolean }) => {
  const token = useSignal('')
  const failed = useSignal<ApiError | null>(null)
  const isBusy = useSignal(false)
  return (
    <main class="login">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          if (isBusy.value) return
          isBusy.value = true
          failed.value = null
          logIn(token.value.trim()).then(
            () => {
              if (isStaleLink) location.hash = '#/'
              location.reload()
            },
            (thrown: unknown) => {
              isBusy.value = false
              if (thrown instanceof ApiError) failed.value = thrown
            },
          )
        }}
      >
        <Mark />
        <h1>Holdfast</h1>
        {isStaleLink && (
          <p class="stale" role="alert">
            The token in this link is not valid. A server that makes its own token prints a new link at each start.
          </p>
        )}
        <p class="note">Enter the token of this server, or your own.</p>
        <Field label="Token" type="password" value={token} required autoFocus />
        {failed.value && <Failure error={failed.value} />}
        <button type="submit" class="primary" disabled={isBusy.value}>
          Open the dashboard
        </button>
      </form>
    </main>
  )
}
