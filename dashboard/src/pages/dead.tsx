/** Dead letters grouped by error, largest group first. A preview precedes a replay or purge. */
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { post } from '../api.ts'
import { begin } from '../background-jobs.tsx'
import { sum } from '../counted.ts'
import { queues } from '../live.ts'
import { Action, Ago, Head, Panel, ShortId } from '../parts/basics.tsx'
import { askWhenKnown, type Question } from '../parts/dialogs/ask.tsx'
import { Check, Field } from '../parts/field.tsx'
import { Empty, Loaded } from '../parts/states.tsx'
import { StillBar } from '../parts/still-bar.tsx'
import { toast } from '../parts/toast.tsx'
import { useResource } from '../resource.ts'
import { hrefOf, taskHref } from '../route.ts'
import { refusal } from '../session.ts'
import { useStill } from '../still.ts'
import { number, plural } from '../text/words.ts'
import type { DeadGroup, Task } from '../types.ts'

interface Preview {
  readonly matched: number
  readonly capped: boolean
  readonly sample: readonly Task[]
  readonly confirm: string
}

interface Groups {
  readonly groups: readonly DeadGroup[]
  readonly scanned: number
  readonly capped: boolean
}

/** Grouping reads every dead letter: with more than this, the page polls instead of following each change. */
const FEW = 2_000

const whole = (text: string): number | undefined => (text.trim() === '' ? undefined : Number(text))

const Sample = ({ preview }: { readonly preview: Preview }) => (
  <>
    <p>
      <b>
        {number(preview.matched)}
        {preview.capped && '+'}
      </b>{' '}
      {preview.matched === 1 ? 'task' : 'tasks'}, such as:
    </p>
    <ul class="sample">
      {preview.sample.slice(0, 4).map((task) => (
        <li key={task.id}>
          {task.type} <ShortId id={task.id} />
        </li>
      ))}
    </ul>
  </>
)

/** null if the preview failed; the error has been shown. */
const previewOf = (name: 'replay' | 'purge', query: object): Promise<Preview | null> =>
  post<Preview>(`/dead-letters/${name}/preview`, { query }).catch((thrown: Error) => {
    toast(thrown.message)
    return null
  })

const replayOf = async (query: object, what: string, reload: () => void): Promise<Question | null> => {
  const preview = await previewOf('replay', query)
  if (preview === null) return null
  const canary = signal(preview.matched > 1 ? '1' : '')
  const rate = signal('')
  const asNew = signal(false)
  return {
    title: `Replay ${what}?`,
    text: <Sample preview={preview} />,
    Body: () => (
      <div class="fields">
        <Field label="Canary" hint="number of tasks to replay first" type="number" value={canary} />
        <Field label="Rate" hint="maximum per second" type="number" value={rate} />
        <p class="note wide">The others follow only if all canaries complete.</p>
        <div class="wide">
          <Check label="As new tasks; the old ones are archived" value={asNew} />
        </div>
      </div>
    ),
    action: preview.capped ? 'Replay them all' : `Replay ${plural(preview.matched, 'task')}`,
    run: () =>
      begin(
        '/dead-letters/replay',
        {
          query,
          confirm: preview.confirm,
          ...(whole(canary.value) && { canary: whole(canary.value) }),
          ...(whole(rate.value) && { rate: whole(rate.value) }),
          ...(asNew.value && { asNew: true }),
        },
        reload,
      ),
  }
}

const purgeOf = async (query: object, what: string, reload: () => void): Promise<Question | null> => {
  const preview = await previewOf('purge', query)
  if (preview === null) return null
  return {
    title: `Purge ${what}?`,
    text: (
      <>
        <Sample preview={preview} />
        <p>This permanently removes them with their histories and idempotency keys.</p>
      </>
    ),
    action: preview.capped ? 'Purge them all' : `Purge ${plural(preview.matched, 'task')}`,
    danger: true,
    run: () => begin('/dead-letters/purge', { query, confirm: preview.confirm }, reload),
  }
}

const Group = ({ group, reload }: { readonly group: DeadGroup; readonly reload: () => void }) => {
  const query = { group: group.fingerprint }
  const refused = refusal('operate')
  return (
    <li class="dead" data-group={group.fingerprint}>
      <p class="how-many">
        <b>{number(group.count)}</b>
        <span class="note">{group.count === 1 ? 'task' : 'tasks'}</span>
      </p>
      <div class="died-of">
        <p class="bad">
          <a class="bad" href={hrefOf('tasks', { status: 'dead', error: group.fingerprint })} data-row>
            <b>{group.name}</b>
            {group.pattern && `: ${group.pattern}`}
          </a>
        </p>
        <p class="note">
          {group.types.map((type) => (
            <a class="tag" key={type} href={hrefOf('tasks', { status: 'dead', type })}>
              {type}
            </a>
          ))}
          last <Ago at={group.lastSeenAt} />, first <Ago at={group.firstSeenAt} />, for example{' '}
          <a href={taskHref(group.sample.id)}>
            <ShortId id={group.sample.id} />
          </a>
        </p>
      </div>
      <div class="acts">
        <Action
          small
          label="Replay"
          of={group.name}
          refused={refused}
          onClick={() => void askWhenKnown(replayOf(query, 'this group', reload))}
        />
        <Action
          small
          label="Purge"
          of={group.name}
          tone="danger"
          refused={refused}
          onClick={() => void askWhenKnown(purgeOf(query, 'this group', reload))}
        />
      </div>
    </li>
  )
}

const idsOf = ({ groups }: Groups): readonly string[] => groups.map(({ fingerprint }) => fingerprint)

export const Dead = () => {
  const read = useResource<Groups>('/dead-letters/groups', { every: 15_000 })
  const dead = sum(queues.value ?? [], 'failed')
  useEffect(() => {
    if ((read.data?.scanned ?? FEW) < FEW) read.reload()
  }, [dead])
  const total = read.data?.groups.reduce((so, { count }) => so + count, 0) ?? 0
  const still = useStill(read.data, { key: '', idsOf })
  const reload = (): void => {
    still.showNext()
    read.reload()
  }
  return (
    <>
      <Head title="Dead letters" note="Tasks that failed permanently, grouped by error.">
        {total > 0 && (
          <Action
            label="Replay all"
            refused={refusal('operate')}
            onClick={() => void askWhenKnown(replayOf({}, 'all dead letters', reload))}
          />
        )}
      </Head>
      <Loaded of={{ ...read, data: still.shown }}>
        {({ groups, scanned, capped }) =>
          groups.length === 0 ? (
            <Empty title="No dead letters">Tasks that use up their retries, or fail permanently, appear here.</Empty>
          ) : (
            <Panel
              title={plural(groups.length, 'group')}
              flush
              aside={
                <>
                  {capped && <span class="note">from the newest {number(scanned)}; there are more</span>}
                  <StillBar of={still} one="group" />
                </>
              }
            >
              <ul class="groups" ref={still.list}>
                {groups.map((group) => (
                  <Group key={group.fingerprint} group={group} reload={reload} />
                ))}
              </ul>
            </Panel>
          )
        }
      </Loaded>
    </>
  )
}
