/** A replay or purge of many runs on the server: it is looked at until it ends, on whichever page one is. */
import { signal } from '@preact/signals'
import { get, part, post } from './api.ts'
import { toast } from './parts/toast.tsx'
import { number } from './words.ts'

interface Report {
  readonly matched: number
  readonly replayed?: number
  readonly purged?: number
  readonly stopped: 'canary' | 'aborted' | 'store' | null
  readonly refused: readonly unknown[]
}

interface Deed {
  readonly id: string
  readonly name: 'replay' | 'purge'
  readonly state: 'running' | 'done' | 'failed'
  readonly done: number
  readonly report: Report | null
  readonly error: { readonly message: string } | null
}

const EVERY = 700
const underWay = signal<readonly Deed[]>([])

const DONE = { replay: 'Replayed', purge: 'Purged' } as const
const DOING = { replay: 'Replaying', purge: 'Purging' } as const

const STOPPED = {
  canary: 'stopped: a canary did not complete',
  aborted: 'stopped by hand',
  store: 'stopped: contact with the store was lost',
} as const

const told = ({ name, report, error }: Deed): string => {
  if (report === null) return `${DOING[name]} failed: ${error?.message ?? 'nobody knows why'}`
  const parts = [
    `${DONE[name]} ${number(report.replayed ?? report.purged ?? 0)} of ${number(report.matched)}`,
    report.stopped && STOPPED[report.stopped],
    report.refused.length > 0 && `${number(report.refused.length)} refused`,
  ]
  return parts.filter(Boolean).join('; ')
}

/** Until it has ended; `then` is called once it has. */
const follow = async (begun: Deed, then: () => void): Promise<void> => {
  let deed = begun
  while (deed.state === 'running') {
    underWay.value = [...underWay.value.filter(({ id }) => id !== begun.id), deed]
    await new Promise((wake) => setTimeout(wake, EVERY))
    deed = await get<Deed>(`/deeds/${part(begun.id)}`).catch(() => deed)
  }
  underWay.value = underWay.value.filter(({ id }) => id !== begun.id)
  toast(told(deed))
  then()
}

export const begin = async (name: 'replay' | 'purge', body: object, then: () => void): Promise<void> => {
  const deed = await post<Deed>(`/dead-letters/${name}`, body)
  void follow(deed, then)
}

export const UnderWay = () => (
  <>
    {underWay.value.map(({ id, name, done }) => (
      <p class="why" key={id} role="status">
        {DOING[name]}: {number(done)} so far.{' '}
        <button type="button" class="plain small" onClick={() => void post(`/deeds/${part(id)}/stop`)}>
          Stop
        </button>
      </p>
    ))}
  </>
)
