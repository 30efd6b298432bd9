/** Starts, kills and stops the worker processes of the demo. */
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export interface Member {
  readonly id: string
  state: 'working' | 'killed' | 'gone'
}

const MODULE = fileURLToPath(new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js', import.meta.url))

export class Crew {
  readonly members: readonly Member[]
  readonly #processes = new Map<Member, { readonly child: ChildProcess; readonly exited: Promise<void> }>()
  #complaints = ''

  /** `url` as the user gave it: the address for messages omits settings and secrets. */
  constructor(size: number, url: string, queue: string) {
    this.members = Array.from({ length: size }, (_, i) => ({ id: `worker-${i + 1}`, state: 'working' }))
    for (const member of this.members) this.#start(member, url, queue)
  }

  #start(member: Member, url: string, queue: string): void {
    const child = spawn(process.execPath, [MODULE, queue, member.id], {
      stdio: ['pipe', 'ignore', 'pipe'],
      // Not as an argument: all users of a machine can read arguments.
      env: { ...process.env, HOLDFAST_URL: url },
    })
    child.stderr!.on('data', (text) => (this.#complaints = `${this.#complaints}${text}`.slice(-4_000)))
    child.stdin!.on('error', () => {})
    const exited = new Promise<void>((done) => {
      child.once('error', () => done())
      child.once('exit', () => {
        if (member.state === 'working') member.state = 'gone'
        done()
      })
    })
    this.#processes.set(member, { child, exited })
  }

  /** The workers' standard error, printed if something goes wrong. */
  get complaints(): string {
    return this.#complaints
  }

  get isGone(): boolean {
    return this.members.every(({ state }) => state !== 'working')
  }

  /** Without a graceful stop, like a power cut or the out-of-memory killer. */
  async kill(member: Member): Promise<void> {
    const { child, exited } = this.#processes.get(member)!
    member.state = 'killed'
    child.kill('SIGKILL')
    await exited
  }

  /** Stops gracefully; also closes standard input, which ends a worker. */
  async sendHome(): Promise<void> {
    for (const { child } of this.#processes.values()) {
      child.kill('SIGTERM')
      child.stdin!.end()
    }
    await Promise.all([...this.#processes.values()].map(({ exited }) => exited))
  }
}
