/** One line on every page: is everything well, and if not, what to do. Its height never changes, so nothing below it moves. */
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { connection, queues } from '../live.ts'
import { useResource } from '../resource.ts'
import { hrefOf } from '../route.ts'
import { now } from '../text/time.ts'
import { duration, plural } from '../text/words.ts'
import type { Health } from '../types.ts'
import { PauseNote } from './pause-note.tsx'

/** How much is wrong: shown in the title and the icon of the tab. */
export const alerts = signal(0)

const setIcon = (isAlert: boolean): void => {
  const icon = document.querySelector<HTMLLinkElement>('link[rel=icon]')
  const href = isAlert ? './icon-alert.svg' : './icon.svg'
  if (icon !== null && icon.getAttribute('href') !== href) icon.setAttribute('href', href)
}

/** A pause of a queue or a group is shown with who and why, so its finding is not repeated. */
const isOfPause = ({ found }: Health['findings'][number]): boolean => /^(queue|group) .* is paused, and /.test(found)

export const HealthStrip = () => {
  const { data } = useResource<Health>('/doctor', { every: 8_000 })
  const paused = (queues.value ?? []).filter(({ pause }) => pause !== null)
  const groups = (queues.value ?? []).flatMap(({ queue, groupPauses }) =>
    Object.entries(groupPauses).map(([group, pause]) => ({ queue, group, pause })),
  )
  const findings = (data?.findings ?? []).filter((finding) => !isOfPause(finding))
  const isLost = connection.value === 'lost'
  const count = (data?.findings.length ?? 0) + (isLost ? 1 : 0)
  useEffect(() => {
    alerts.value = count
    setIcon(count > 0)
  }, [count])
  const isWell = findings.length === 0 && paused.length === 0 && groups.length === 0
  const oldest = data?.oldest ?? null
  const worst = findings.some(({ verdict }) => verdict === 'problem') ? 'problem' : isWell ? 'ok' : 'warning'
  const wait = oldest && `oldest wait ${duration(Math.max(0, now.value - Date.parse(oldest.since)))} in ${oldest.queue}`
  if (data === null) return <div class="health" data-verdict="unknown" />
  if (isLost)
    return (
      <p class="health" data-verdict="unknown">
        <span>Not known since the connection was lost</span>
      </p>
    )
  if (isWell)
    return (
      <p class="health" data-verdict="ok">
        <span>Everything is well</span>
        {wait && <span class="note">{wait}</span>}
      </p>
    )
  const parts = [
    findings[0]?.found,
    paused.length > 0 && `${plural(paused.length, 'queue')} paused`,
    groups.length > 0 && `${plural(groups.length, 'group')} paused`,
  ].filter(Boolean)
  return (
    <details class="health" data-verdict={worst}>
      <summary>
        <b>{plural(findings.length + paused.length + groups.length, 'notice')}</b>
        <span class="first">{parts.join(' · ')}</span>
        {wait && <span class="note">{wait}</span>}
      </summary>
      <ul>
        {findings.map(({ found, fix, verdict }) => (
          <li key={found} data-verdict={verdict}>
            <p>{found}</p>
            {fix && <p class="note">{fix}</p>}
          </li>
        ))}
        {paused.map(({ queue, pause, ready }) => (
          <li key={queue} data-verdict="warning">
            <p>
              Queue <a href={hrefOf(`queues/${encodeURIComponent(queue)}`)}>{queue}</a> is paused
              {ready > 0 && `, ${plural(ready, 'task waits', 'tasks wait')}`}
            </p>
            <PauseNote pause={pause!} />
          </li>
        ))}
        {groups.map(({ queue, group, pause }) => (
          <li key={`${queue}/${group}`} data-verdict="warning">
            <p>
              Group {group} of queue <a href={hrefOf(`queues/${encodeURIComponent(queue)}`)}>{queue}</a> is paused
            </p>
            <PauseNote pause={pause} />
          </li>
        ))}
      </ul>
    </details>
  )
}
