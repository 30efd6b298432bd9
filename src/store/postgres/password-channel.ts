/**
 * A password that is a function (IAM tokens) cannot be sent to another thread, so the keeper's thread asks for a password each
 * time it connects. Only a new connection needs the event loop; renewals on an open one do not.
 */
import { randomUUID } from 'node:crypto'
import { BroadcastChannel } from 'node:worker_threads'

export type Password = () => string | Promise<string>

interface Asking {
  readonly ask: string
}

interface Answer {
  readonly to: string
  readonly password: string
}

export interface PasswordServer {
  /** A name that only the thread knows. */
  readonly channel: string
  close(): void
}

export const servePasswords = (password: Password): PasswordServer => {
  const name = `holdfast-${randomUUID()}`
  const channel = new BroadcastChannel(name)
  channel.onmessage = (message: unknown) => {
    const { ask } = (message as { readonly data: Asking }).data
    if (ask === undefined) return
    // On failure there is no answer: the thread times out and asks again.
    Promise.resolve()
      .then(password)
      .then((answer) => channel.postMessage({ to: ask, password: answer } satisfies Answer))
      .catch(() => {})
  }
  channel.unref()
  return { channel: name, close: () => channel.close() }
}

export const askPassword = (name: string, patience: number): Promise<string> =>
  new Promise((done, failed) => {
    const ask = randomUUID()
    const channel = new BroadcastChannel(name)
    const end = (): void => {
      clearTimeout(timer)
      channel.close()
    }
    const timer = setTimeout(() => {
      end()
      failed(new Error(`timeout: no password within ${patience} ms`))
    }, patience)
    channel.onmessage = (message: unknown) => {
      const { to, password } = (message as { readonly data: Answer }).data
      if (to !== ask) return
      end()
      done(password)
    }
    channel.postMessage({ ask } satisfies Asking)
  })
