/** Runs the real program as a user types it, in a folder of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll } from 'vitest'
import { type Client, connect, silentLogger } from '../../src/index.ts'

export const LAUNCHER = fileURLToPath(new URL('../../bin/holdfast.js', import.meta.url))

if (!existsSync(new URL('../../dist/cli/main.js', import.meta.url))) {
  throw new Error('dist/cli/main.js is missing: run `npm run build` before the tests of the command line')
}

export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  readonly input?: string | Uint8Array
  readonly env?: Readonly<Record<string, string>>
  /** Options of node itself. */
  readonly node?: readonly string[]
}

/** The test runner's own colours and addresses must not reach the program. */
const cleanEnv = (): NodeJS.ProcessEnv => {
  const { FORCE_COLOR: _, NO_COLOR: __, HOLDFAST_URL: ___, ...env } = process.env
  return env
}

export class Folder {
  readonly path = mkdtempSync(join(tmpdir(), 'holdfast-cli-'))

  get url(): string {
    return `sqlite:${join(this.path, 'holdfast.db')}`
  }

  has(name: string): boolean {
    return existsSync(join(this.path, name))
  }

  write(name: string, text: string | Uint8Array): string {
    const path = join(this.path, name)
    writeFileSync(path, text)
    return path
  }

  start(args: readonly string[], { env = {}, node = [] }: RunOptions = {}): ChildProcess {
    return spawn(process.execPath, [...node, LAUNCHER, ...args], {
      cwd: this.path,
      env: { ...cleanEnv(), ...env },
      stdio: 'pipe',
    })
  }

  run(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
    const child = this.start(args, options)
    const read = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const)
      child[name]!.setEncoding('utf8').on('data', (text) => (read[name] += text))
    child.stdin!.on('error', () => {})
    child.stdin!.end(options.input)
    return new Promise((done) => child.once('close', (code) => done({ code, ...read })))
  }

  /** The same store through the library, to bring tasks into the states that a test needs. */
  async withClient<T>(work: (client: Client) => Promise<T>): Promise<T> {
    const client = await connect(this.url, { name: 'test', logger: silentLogger })
    try {
      return await work(client)
    } finally {
      await client.close()
    }
  }
}

const folders: Folder[] = []

// Here and not in makeFolder, which tests call while they run: a hook that is set then is not heard of.
afterAll(() => {
  for (const { path } of folders.splice(0)) rmSync(path, { recursive: true, force: true })
})

/** A folder that is gone when the file's tests are over. */
export const makeFolder = (): Folder => {
  const folder = new Folder()
  folders.push(folder)
  return folder
}

/** Lines of a running program, one by one; rejects when it ends before the line that is waited for. */
export const linesOf = (child: ChildProcess): { until(what: RegExp): Promise<string> } => {
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]()
  return {
    async until(what) {
      const passed: string[] = []
      for (;;) {
        const { value, done } = await lines.next()
        if (done) throw new Error(`the program ended before a line like ${what}; it said:\n${passed.join('\n')}`)
        if (what.test(value)) return value
        passed.push(value)
      }
    },
  }
}

export const exitOf = (child: ChildProcess): Promise<number | null> => new Promise((done) => child.once('close', done))

/** Ids, instants, names and spans of time as words, so that what is left can be compared. */
export const normalised = (text: string): string =>
  text
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'ID')
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z/g, 'INSTANT')
    .replaceAll(/\b\d+(ms|s|m|h|d)( \d+(s|m|h))? ago/g, 'AGO')
    .replaceAll(/\bin \d+(ms|s|m|h|d)( \d+(s|m|h))?/g, 'SOON')
    .replaceAll(/\(now\)/g, '(AGO)')
