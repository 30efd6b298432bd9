/**
 * Follows a page to the letter, as a new user would: writes each block that names a file, runs each block of commands, and compares the text
 * below with what was printed. `sh terminal` is a terminal of its own, which stays open; `sh elsewhere` is not run. Ids, instants,
 * durations and names of processes are told apart from words: an id stands for the same task throughout.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Block, blocksOf } from './markdown.ts'

export interface FollowOptions {
  /** An empty folder. */
  readonly folder: string
  /** What to take in place of what the page says: a packed tarball for `npm install holdfast`, the address of a real server. */
  readonly replace: readonly (readonly [string, string])[]
  /** Called at the end, while the terminals are still open, with what they printed. */
  readonly look?: (printed: readonly string[]) => Promise<void>
}

const PATIENCE = 60_000
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g

/** What may differ from one machine and one run to another. */
const plain = (line: string): string =>
  line
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'INSTANT')
    .replace(/\b\d+(\.\d+)?(ms|s|m|h)\b( \d+(s|m)\b)?/g, 'TIME')
    .replace(/[\w.-]+\/\d+\/[\w-]+/g, 'PROCESS')
    .replace(/sqlite:\S+/g, 'sqlite:FILE')
    .replace(/postgres:\/\/\S+/g, 'postgres:SERVER')
    .replace(/token=\S+/g, 'token=TOKEN')
    .replace(/ +/g, ' ')
    .trimEnd()

/** Warnings on how npm is set up here, and on a server that is fast because it keeps nothing, are no part of any page. */
const OF_THIS_MACHINE = /^npm warn |runs with fsync = off/

const linesOf = (text: string): string[] =>
  text.split('\n').filter((line) => line.trim() !== '' && !OF_THIS_MACHINE.test(line))

export const follow = async (page: string, options: FollowOptions): Promise<void> => {
  const session = new Session(options)
  try {
    const blocks = blocksOf(page)
    for (const [n, block] of blocks.entries()) {
      const [language, mark] = block.info.split(' ') as [string, string?]
      const said = blocks[n + 1]?.info.startsWith('text') ? blocks[n + 1]! : null
      if (language === 'sh' && mark === 'terminal') await session.open(block, said)
      else if (language === 'sh' && mark === undefined) await session.run(block, said)
      else if (mark?.includes('.')) session.write(mark, block.code)
      else if (!['text', 'sh'].includes(language)) throw new Error(`line ${block.line}: what is '${block.info}'?`)
    }
    await options.look?.(session.printed())
  } finally {
    await session.close()
  }
}

class Session {
  readonly #options: FollowOptions
  readonly #terminals: { readonly child: ChildProcess; printed: string }[] = []
  /** The ids of the page, and the tasks that they stand for here. */
  readonly #ids = new Map<string, string>()
  #folder: string
  #env: NodeJS.ProcessEnv

  constructor(options: FollowOptions) {
    this.#options = options
    this.#folder = options.folder
    // A new user's shell knows nothing of this repository.
    const own = Object.entries(process.env).filter(
      ([name]) => !/^(npm_|HOLDFAST|VITEST|NODE_(ENV|OPTIONS|COMPILE_CACHE)$)/.test(name),
    )
    this.#env = {
      ...Object.fromEntries(own),
      PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
      NO_COLOR: '1',
    }
  }

  printed(): string[] {
    return this.#terminals.map(({ printed }) => printed)
  }

  write(name: string, text: string): void {
    const file = join(this.#folder, name)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }

  async run(block: Block, said: Block | null): Promise<void> {
    // The folder and the variables are those of the next command, as in a terminal.
    const after = join(this.#options.folder, 'after.json')
    const keep = `node -e 'fs.writeFileSync(process.argv[1], JSON.stringify([process.cwd(), process.env]))' '${after}'`
    const terminal = this.#start(`${this.#asHere(block.code)}\n${keep}`)
    const code = await new Promise<number | null>((done) => terminal.child.once('close', done))
    this.#terminals.pop()
    if (code !== 0) throw new Error(`line ${block.line}: exit code ${code}\n${block.code}${terminal.printed}`)
    ;[this.#folder, this.#env] = JSON.parse(readFileSync(after, 'utf8'))
    if (said !== null) this.#compare(said, linesOf(terminal.printed))
  }

  async open(block: Block, said: Block | null): Promise<void> {
    const terminal = this.#start(this.#asHere(block.code))
    const wanted = said === null ? 0 : linesOf(said.code).length
    const until = Date.now() + PATIENCE
    while (linesOf(terminal.printed).length < wanted) {
      if (terminal.child.exitCode !== null || Date.now() > until)
        throw new Error(`line ${block.line}: ${wanted} lines were expected\n${block.code}${terminal.printed}`)
      await sleep(50)
    }
    if (said !== null) this.#compare(said, linesOf(terminal.printed))
  }

  /** Ends the terminals with Ctrl-C, and waits until they have ended. */
  async close(): Promise<void> {
    for (const { child } of this.#terminals.reverse()) {
      if (child.exitCode !== null) continue
      const ended = new Promise((done) => child.once('close', done))
      process.kill(-child.pid!, 'SIGINT')
      const late = setTimeout(() => process.kill(-child.pid!, 'SIGKILL'), PATIENCE)
      await ended
      clearTimeout(late)
    }
  }

  #start(script: string): { readonly child: ChildProcess; printed: string } {
    const child = spawn('bash', ['-euc', script], {
      cwd: this.#folder,
      env: this.#env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const terminal = { child, printed: '' }
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        terminal.printed += text
      })
    this.#terminals.push(terminal)
    return terminal
  }

  #asHere(code: string): string {
    const replaced = this.#options.replace.reduce((text, [from, to]) => text.replaceAll(from, to), code)
    return replaced.replace(UUID, (id) => this.#ids.get(id) ?? id)
  }

  /** Every line of the page must have been printed, and nothing else. */
  #compare(said: Block, printed: readonly string[]): void {
    const anyOrder = said.info === 'text any-order'
    const order = (lines: string[]): string[] => (anyOrder ? lines.sort() : lines)
    const wanted = linesOf(said.code)
    for (const [n, line] of wanted.entries()) {
      const ids = printed[n]?.match(UUID) ?? []
      for (const [at, id] of (line.match(UUID) ?? []).entries())
        if (!this.#ids.has(id) && ids[at] !== undefined) this.#ids.set(id, ids[at])
    }
    const here = wanted.map((line) => line.replace(UUID, (id) => this.#ids.get(id) ?? id))
    const [expected, actual] = [order(here.map(plain)).join('\n'), order(printed.map(plain)).join('\n')]
    if (expected !== actual)
      throw new Error(`line ${said.line}: the page says\n${expected}\n\nbut this was printed\n${actual}`)
  }
}
