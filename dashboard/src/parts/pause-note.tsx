/** Who paused something, when, until when, and why. */
import type { Pause } from '../types.ts'
import { Ago, At } from './basics.tsx'

export const PauseNote = ({ pause: { by, at, until, reason } }: { readonly pause: Pause }) => (
  <p class="note pause">
    {by && `by ${by}, `}
    {at && <Ago at={at} />}
    {until && (
      <>
        , until <At at={until} />
      </>
    )}
    {reason && (
      <>
        : <b>{reason}</b>
      </>
    )}
  </p>
)
