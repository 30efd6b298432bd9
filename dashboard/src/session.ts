/** The session with the server: its store and our rights. */
import { computed, signal } from '@preact/signals'
import { ApiError, get, post, remove } from './api.ts'
import { connection } from './live.ts'
import { setStoreTime } from './text/time.ts'
import type { Info } from './types.ts'

export const info = signal<Info | null>(null)
/** The server requires a token. */
export const isLocked = signal(false)
export const isReadOnly = computed(() => info.value?.readOnly ?? false)

export const loadInfo = async (): Promise<void> => {
  try {
    const asked = Date.now()
    const answer = await get<Info>('/info')
    setStoreTime(Date.parse(answer.now), (asked + Date.now()) / 2)
    info.value = answer
    isLocked.value = false
  } catch (thrown) {
    if (thrown instanceof ApiError && thrown.status === 401) isLocked.value = true
    else setTimeout(() => void loadInfo(), 3_000)
  }
}

export const logIn = async (token: string): Promise<void> => {
  await post('/session', { token })
  await loadInfo()
}

/** The page of the login, and nothing that was read before. */
export const logOut = async (): Promise<void> => {
  await remove('/session')
  location.hash = '#/'
  location.reload()
}

/** Why an action is not allowed; null if it is. */
export const refusal = (right: 'operate' | 'submit' | 'signal'): string | null => {
  if (info.value === null) return 'Not connected'
  if (connection.value === 'lost') return 'The connection to the server is lost'
  if (info.value.readOnly) return 'The server is read-only'
  return info.value.rights.includes(right) ? null : 'Your token does not allow this'
}
