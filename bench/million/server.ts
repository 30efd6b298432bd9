/** `holdfast serve` in a separate process, and a minimal client for it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))

export interface Server {
  readonly url: string
  readonly pid: number
  stop(): Promise<void>
}

export const startServer = async (address: string): Promise<Server> => {
  const child = spawn(process.execPath, [MAIN, 'serve', '--port', '0', '--no-token', '--json', '--url', address], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
  return {
    url: (JSON.parse(line) as { url: string }).url,
    pid: child.pid!,
    async stop() {
      child.kill('SIGTERM')
      await once(child, 'exit')
    },
  }
}

/** As many connections as a browser opens to one host. */
const agent = new Agent({ keepAlive: true, maxSockets: 6 })

const send = (url: string, body: object | null, then: (response: IncomingMessage) => void): Promise<void> =>
  new Promise((done, fail) => {
    const text = body === null ? null : JSON.stringify(body)
    const asked = request(
      url,
      {
        agent,
        method: text === null ? 'GET' : 'POST',
        headers: text === null ? {} : { 'content-type': 'application/json', origin: new URL(url).origin },
      },
      (response) => {
        then(response)
        response.on('end', () =>
          response.statusCode === 200 ? done() : fail(new Error(`${url}: ${response.statusCode}`)),
        )
      },
    )
    asked.on('error', fail)
    asked.end(text)
  })

/** Receives the whole response without parsing it. */
export const ask = async (base: string, asked: string | readonly [string, object]): Promise<string> => {
  const [path, body] = typeof asked === 'string' ? [asked, null] : asked
  let answer = ''
  await send(`${base}api/v1${path}`, body, (response) => {
    response.setEncoding('utf8')
    response.on('data', (chunk: string) => (answer += chunk))
  })
  return answer
}

/** Receives server-sent events until `close` of the returned object. */
export const listenTo = (base: string, heard: (chunk: string) => void): { close(): void } => {
  const asked = request(`${base}api/v1/changes`, { agent: false }, (response) => {
    response.setEncoding('utf8')
    response.on('data', heard)
    response.on('error', () => {})
  })
  asked.on('error', () => {})
  asked.end()
  return { close: () => asked.destroy() }
}

export const hangUp = (): void => agent.destroy()
