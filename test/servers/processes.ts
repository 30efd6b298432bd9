/** Server processes of the tests: tied to this one, free ports on loopback, readiness read from their own output. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'

/** As asked of the kernel. */
export const freePort = (): Promise<number> =>
  new Promise((done, failed) => {
    const server = createServer()
    server.once('error', failed)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() =>
        typeof address === 'object' && address !== null ? done(address.port) : failed(new Error('no port')),
      )
    })
  })

const hasSetpriv = spawnSync('setpriv', ['--version']).status === 0

/** The command, made to die with us even if we are killed, where the system can do that. */
export const tied = (command: string, args: readonly string[]): [string, string[]] =>
  hasSetpriv ? ['setpriv', ['--pdeathsig', 'KILL', command, ...args]] : [command, [...args]]

/** Resolves when the child's stderr or stdout has said `ready`; rejects with what it said instead. */
export const untilSays = (child: ChildProcess, ready: RegExp, deadline = 30_000): Promise<void> =>
  new Promise((done, failed) => {
    let said = ''
    const timer = setTimeout(() => failed(new Error(`not ready after ${deadline} ms: ${said}`)), deadline)
    const read = (data: Buffer): void => {
      said = (said + data.toString()).slice(-20_000)
      if (!ready.test(said)) return
      clearTimeout(timer)
      done()
    }
    child.stdout?.on('data', read)
    child.stderr?.on('data', read)
    child.once('error', failed)
    child.once('exit', (code) => {
      clearTimeout(timer)
      failed(new Error(`ended with ${code}: ${said}`))
    })
  })

export const ended = (child: ChildProcess): Promise<void> =>
  child.exitCode !== null || child.signalCode !== null
    ? Promise.resolve()
    : new Promise((done) => child.once('exit', () => done()))

/** kill -9, and gone. */
export const killed = async (child: ChildProcess): Promise<void> => {
  child.kill('SIGKILL')
  await ended(child)
}

/** A server and what it has forked. */
export const withChildren = (pid: number): number[] => {
  const parentOf = (text: string): number => Number(text.slice(text.lastIndexOf(')') + 4).split(' ')[0])
  const forked = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        return parentOf(readFileSync(`/proc/${name}/stat`, 'utf8')) === pid
      } catch {
        return false
      }
    })
  return [pid, ...forked.map(Number)]
}

export { spawn }
