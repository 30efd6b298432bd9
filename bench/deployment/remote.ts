/** The coordinator's side of a process: starts it, sends requests, and ends it. */
import { type ChildProcess, fork } from 'node:child_process'
import { ended } from '../../test/servers/processes.ts'
import type { Message, Verbs } from './serve.ts'

interface Waiting {
  done(answer: unknown): void
  failed(error: Error): void
}

/** The end of a process's output is kept for its error message. */
const KEPT = 4_000
/** Longer than any request takes, filling a store with a million tasks included. */
const DEADLINE_MS = 15 * 60_000

export class Remote<V extends Verbs> {
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, Waiting>()
  #requests = 0
  #printed = ''
  /** Called with unsolicited messages of the process. */
  onNote: (note: unknown) => void = () => {}
  /** Called when the process has ended, expectedly or not. */
  onEnd: (error: Error) => void = () => {}

  constructor(file: URL, env: NodeJS.ProcessEnv, args: readonly string[]) {
    this.#child = fork(file, args, {
      env: { ...process.env, ...env },
      execArgv: [],
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    for (const stream of [this.#child.stdout!, this.#child.stderr!])
      stream.setEncoding('utf8').on('data', (text: string) => (this.#printed = (this.#printed + text).slice(-KEPT)))
    this.#child.on('message', (message: Message) => this.#heard(message))
    this.#child.on('error', (error) => this.#failAll(error))
    this.#child.on('exit', (code, signal) =>
      this.#failAll(new Error(`a process ended with ${signal ?? code}:\n${this.#printed.trim()}`)),
    )
  }

  call<K extends keyof V & string>(verb: K, ...[args]: Parameters<V[K]>): Promise<Awaited<ReturnType<V[K]>>> {
    const id = ++this.#requests
    return new Promise((done, failed) => {
      const timer = setTimeout(() => failed(new Error(`no answer to '${verb}' in ${DEADLINE_MS} ms`)), DEADLINE_MS)
      this.#waiting.set(id, {
        done(answer) {
          clearTimeout(timer)
          done(answer as Awaited<ReturnType<V[K]>>)
        },
        failed(error) {
          clearTimeout(timer)
          failed(error)
        },
      })
      this.#child.send({ id, verb, args }, (error) => {
        if (error !== null) this.#waiting.get(id)?.failed(error)
      })
    })
  }

  async end(): Promise<void> {
    this.#child.kill('SIGKILL')
    await ended(this.#child)
  }

  #heard(message: Message): void {
    if ('note' in message) {
      this.onNote(message.note)
      return
    }
    const waiting = this.#waiting.get(message.id)
    this.#waiting.delete(message.id)
    if ('error' in message) waiting?.failed(new Error(`${message.error}\n${this.#printed.trim()}`.trim()))
    else waiting?.done(message.answer)
  }

  #failAll(error: Error): void {
    for (const { failed } of this.#waiting.values()) failed(error)
    this.#waiting.clear()
    this.onEnd(error)
  }
}
