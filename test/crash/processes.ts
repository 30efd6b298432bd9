/** Real processes: start one from src, wait for a line that it prints, send it signals, never leave one behind. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach } from 'vitest'

export interface Line {
  readonly say: string
  readonly [fact: string]: unknown
}

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export interface StartOptions {
  /** A command to run it under, such as strace with its options. */
  readonly under?: readonly string[]
  readonly env?: Record<string, string>
  /** As `node --input-type=module -e 'text'`. */
  readonly asText?: boolean
}

const living = new Set<Child>()
const DEADLINE = 60_000

/** A child says things as JSON lines on its standard output: `{ "say": "ready" }`. */
export class Child {
  readonly pid: number
  readonly ended: Promise<Ended>
  readonly lines: Line[] = []
  #stderr = ''
  #rest = ''
  #hasEnded = false
  readonly #process: ChildProcess
  readonly #listeners = new Set<() => void>()

  constructor(child: ChildProcess) {
    this.#process = child
    this.pid = child.pid!
    living.add(this)
    child.stdout!.setEncoding('utf8').on('data', (text: string) => this.#heard(text))
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-20_000)
    })
    this.ended = new Promise((done) => {
      child.once('close', (code, signal) => {
        this.#hasEnded = true
        living.delete(this)
        this.#tell()
        done({ code, signal })
      })
    })
  }

  get isAlive(): boolean {
    return !this.#hasEnded
  }

  get stderr(): string {
    return this.#stderr
  }

  said(say: string): Line[] {
    return this.lines.filter((line) => line.say === say)
  }

  /** The first line that says so, and of which `also` holds. Rejects when the process ends or the deadline passes first. */
  async heard(say: string, also: (line: Line) => boolean = () => true, deadline = DEADLINE): Promise<Line> {
    const find = (): Line | undefined => this.lines.find((line) => line.say === say && also(line))
    await this.#until(() => find() !== undefined || this.#hasEnded, deadline, `'${say}'`)
    const line = find()
    if (line === undefined)
      throw new Error(
        `process ${this.pid} ended before it said '${say}'; it last said ${JSON.stringify(this.lines.at(-1))}: ${this.#stderr}`,
      )
    return line
  }

  signal(name: NodeJS.Signals): void {
    this.#process.kill(name)
  }

  async kill(): Promise<Ended> {
    if (this.isAlive) this.signal('SIGKILL')
    return this.ended
  }

  /** Ends by itself: what it exits with. */
  async end(deadline = DEADLINE): Promise<Ended> {
    await this.#until(() => this.#hasEnded, deadline, 'its end')
    return this.ended
  }

  #until(isSo: () => boolean, deadline: number, what: string): Promise<void> {
    if (isSo()) return Promise.resolve()
    return new Promise((done, failed) => {
      const look = (): void => {
        if (isSo()) finish(done)
      }
      const finish = (then: () => void): void => {
        clearTimeout(timer)
        this.#listeners.delete(look)
        then()
      }
      const late = (): void =>
        failed(new Error(`waited ${deadline} ms for ${what} of process ${this.pid}: ${this.#stderr}`))
      const timer = setTimeout(() => finish(late), deadline)
      this.#listeners.add(look)
    })
  }

  #heard(text: string): void {
    const parts = (this.#rest + text).split('\n')
    this.#rest = parts.pop()!
    for (const part of parts) if (part.startsWith('{')) this.lines.push(JSON.parse(part) as Line)
    this.#tell()
  }

  #tell(): void {
    for (const look of [...this.#listeners]) look()
  }
}

/** Runs test/crash/children/`script`.ts, with `plan` as its one argument. */
export const start = (script: string, plan: object, options: StartOptions = {}): Child => {
  const { under = [], env = {}, asText = false } = options
  const url = new URL(`./children/${script}.ts`, import.meta.url)
  // The place of the script among the arguments is empty there.
  const text = `process.argv.splice(1, 0, ''); await import('${url.href}')`
  const program = asText ? ['--input-type=module', '-e', text] : [fileURLToPath(url)]
  const [command, ...rest] = [...under, process.execPath, '--no-warnings', ...program, JSON.stringify(plan)]
  return new Child(spawn(command!, rest, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } }))
}

/** Polls a fact of the world until it holds. */
export const until = async (
  what: string,
  isSo: () => boolean | Promise<boolean>,
  deadline = DEADLINE,
  every = 20,
): Promise<void> => {
  const end = performance.now() + deadline
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error(`waited ${deadline} ms until ${what}`)
    await pause(every)
  }
}

/** Part of a workload (a random time between two kills) or of a poll; never a way to wait for something. */
export const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms))

const folders: string[] = []

/** Removed when the file's tests are over. */
export const folder = (): string => {
  const made = mkdtempSync(join(tmpdir(), 'holdfast-crash-'))
  folders.push(made)
  return made
}

/** Where no test runner calls `cleanUp`. */
export const removeFolders = (): void => {
  for (const made of folders.splice(0)) rmSync(made, { recursive: true, force: true })
}

/** Call once at the top of a test file; with `afterAll` where tests run side by side, each with processes of its own. */
export const cleanUp = (when: typeof afterEach | typeof afterAll = afterEach): void => {
  when(async () => {
    for (const child of [...living]) {
      // A stopped process dies of SIGKILL all the same.
      await child.kill()
    }
  })
  afterAll(removeFolders)
}
