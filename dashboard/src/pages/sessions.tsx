/** The browsers that are logged in with a token. An operator can log each of them out. */
import { part, remove } from '../api.ts'
import { Action, ActionsHead, Ago, Head, Panel } from '../parts/basics.tsx'
import { ask } from '../parts/dialogs/ask.tsx'
import { Empty, Loaded } from '../parts/states.tsx'
import { toast } from '../parts/toast.tsx'
import { useResource } from '../resource.ts'
import { info, logOut, refusal } from '../session.ts'
import type { LoggedIn } from '../types.ts'

const askToEnd = ({ id, name }: LoggedIn, reload: () => void): void =>
  ask({
    title: `Log ${name ?? 'this browser'} out?`,
    text: <p>Its live updates end at once. With the token, the browser can log in again.</p>,
    action: 'Log out',
    danger: true,
    run: async () => {
      await remove(`/sessions/${part(id)}`)
      toast('Logged out')
      reload()
    },
  })

export const Sessions = () => {
  const read = useResource<{ readonly sessions: readonly LoggedIn[] }>('/sessions', { every: 10_000 })
  return (
    <>
      <Head
        title="Sessions"
        note="Browsers that are logged in to this server. A session ends after 12 hours without use."
      >
        {info.value?.session && (
          <button type="button" class="plain" onClick={() => void logOut()}>
            Log out
          </button>
        )}
      </Head>
      <Loaded of={read}>
        {({ sessions }) =>
          sessions.length === 0 ? (
            <Empty title="No sessions">A browser that logs in with a token appears here.</Empty>
          ) : (
            <Panel flush>
              <table class="cards">
                <thead>
                  <tr>
                    <th scope="col">Token</th>
                    <th scope="col" class="time">
                      Last used
                    </th>
                    <th scope="col" class="time">
                      Logged in
                    </th>
                    <ActionsHead />
                  </tr>
                </thead>
                <tbody>
                  {sessions.map((session) => (
                    <tr key={session.id} data-session={session.id}>
                      <th scope="row">
                        {session.name ?? 'without a name'} {session.isOwn && <span class="tag">this browser</span>}
                      </th>
                      <td class="time" data-label="Last used">
                        <Ago at={session.seenAt} />
                      </td>
                      <td class="time" data-label="Logged in">
                        <Ago at={session.startedAt} />
                      </td>
                      <td class="acts">
                        {!session.isOwn && (
                          <Action
                            small
                            label="Log out"
                            of={session.name ?? 'this browser'}
                            tone="danger"
                            refused={refusal('operate')}
                            onClick={() => askToEnd(session, read.reload)}
                          />
                        )}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </Panel>
          )
        }
      </Loaded>
    </>
  )
}
