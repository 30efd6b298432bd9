/** The worker processes of the demo: started, killed, sent home. */
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

  constructor(size: number, address: string, queue: string) {
    this.members = Array.from({ length: size }, (_, i) => ({ id: `worker-${i + 1}`, state: 'working' }))
    for (const member of this.members) this.#start(member, address, queue)
  }

  #start(member: Member, address: string, queue: string): void {
    const child = spawn(process.execPath, [MODULE, address, queue, member.id], { stdio: ['pipe', 'ignore', 'pipe'] })
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

  /** What the workers wrote to standard error, for when something went wrong. */
  get complaints(): string {
    return this.#complaints
  }

  get isGone(): boolean {
    return this.members.every(({ state }) => state !== 'working')
  }

  /** No goodbye: what a power cut or the out-of-memory killer does. */
  async kill(member: Member): Promise<void> {
    const { child, exited } = this.#processes.get(member)!
    member.state = 'killed'
    child.kill('SIGKILL')
    await exited
  }

  /** Gracefully; also closes standard input, which a worker takes as the end of the show. */
  async sendHome(): Promise<void> {
    for (const { child } of this.#processes.values()) {
      child.kill('SIGTERM')
      child.stdin!.end()
    }
    await Promise.all([...this.#processes.values()].map(({ exited }) => exited))
  }
}
