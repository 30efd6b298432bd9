/** The processes of a soak: started, sampled, stopped. */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { ended } from '../../test/servers/processes.ts'
import { QUEUES } from './load.ts'
import type { Place } from './places.ts'
import type { ProcessSample } from './sample.ts'
import { TOKEN } from './visitors.ts'

const PROBE = new URL('./probe.ts', import.meta.url).href
const COMMAND = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const pathOf = (file: string): string => fileURLToPath(new URL(file, import.meta.url))

/** A collection and a few counts; on a machine that is busy with other things. */
const DEADLINE = 60_000
const KEPT = 4_000

export interface Member {
  readonly name: string
  sample(): Promise<ProcessSample>
  /** SIGTERM, and gone; what it had not done by itself is for SIGKILL. */
  stop(): Promise<void>
}

interface Started extends Member {
  /** The first line of its standard output. */
  readonly said: Promise<string>
}

const startMember = (name: string, file: string, args: readonly string[], env: NodeJS.ProcessEnv): Started => {
  const child: ChildProcess = fork(file, args, {
    execArgv: ['--no-warnings', '--import', PROBE],
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  let complaints = ''
  let failed: Error | null = null
  let isStopping = false
  const listeners = new Set<(error: Error) => void>()
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (complaints = (complaints + text).slice(-KEPT)))
  child.once('exit', (code, signal) => {
    failed = new Error(`${name} ended with ${signal ?? code}:\n${complaints.trim()}`)
    for (const listener of listeners) listener(failed)
  })
  const said = new Promise<string>((done, fail) => {
    let text = ''
    child.stdout!.setEncoding('utf8').on('data', (part: string) => {
      if (text.includes('\n')) return
      text += part
      if (text.includes('\n')) done(text.split('\n')[0]!)
    })
    listeners.add(fail)
  })
  said.catch(() => {})
  return {
    name,
    said,
    sample: () =>
      new Promise((done, fail) => {
        if (failed !== null) return fail(failed)
        const timer = setTimeout(() => over(() => fail(new Error(`${name} did not answer`))), DEADLINE)
        const heard = (sample: ProcessSample): void => over(() => done(sample))
        const fell = (error: Error): void => over(() => fail(error))
        const over = (then: () => void): void => {
          clearTimeout(timer)
          child.off('message', heard)
          listeners.delete(fell)
          then()
        }
        child.on('message', heard)
        listeners.add(fell)
        child.send('sample')
      }),
    async stop() {
      if (isStopping || failed !== null) return
      isStopping = true
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), DEADLINE)
      await ended(child)
      clearTimeout(timer)
    },
  }
}

export interface CrewPlan {
  readonly rate: number
  readonly workers: number
  readonly leak: number
}

/** In the order in which they are to stop. The first one submits. */
export const startCrew = async (
  { address, env }: Place,
  { rate, workers, leak }: CrewPlan,
): Promise<readonly Member[]> => {
  const all = { ...env, HOLDFAST_TOKEN: TOKEN, SOAK_LEAK: String(leak) }
  if (address === 'memory:')
    return [startMember('process', pathOf('./alone-process.ts'), [JSON.stringify({ rate })], all)]
  const serve = startMember('serve', COMMAND, ['serve', '--url', address, '--port', '0', '--json'], all)
  const { url } = JSON.parse(await serve.said) as { readonly url: string }
  const queues = QUEUES.flatMap((queue) => ['--queue', queue])
  const crew = Array.from({ length: workers }, (_, n) =>
    startMember(`worker ${n + 1}`, COMMAND, ['worker', pathOf('./handlers.ts'), '--url', address, ...queues], all),
  )
  const use = JSON.stringify({ address, rate, url })
  return [startMember('producer', pathOf('./producer-process.ts'), [use], all), ...crew, serve]
}
