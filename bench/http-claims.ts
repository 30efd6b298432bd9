/** Claims through the HTTP worker API: one client, claims of one task, 16 in flight, keep-alive, on SQLite. Prints claims/s. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { connect } from '../src/index.ts'

const IN_FLIGHT = 16
const TASKS = Number(process.argv[2] ?? 10_000)
const TOKEN = 'a-token-for-the-benchmark-only'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-http-'))
const address = `sqlite:${join(folder, 'q.db')}`
const agent = new Agent({ keepAlive: true, maxSockets: IN_FLIGHT })

/** A minimal client, so that the client is not the limit. */
const post = (url: URL, body: string): Promise<string> =>
  new Promise((done, fail) => {
    const headers = {
      authorization: `Bearer ${TOKEN}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    }
    const asked = request(url, { method: 'POST', agent, headers }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => (text += chunk))
      response.on('end', () => (response.statusCode === 200 ? done(text) : fail(new Error(text))))
    })
    asked.on('error', fail)
    asked.end(body)
  })

const submitTasks = async (): Promise<void> => {
  const client = await connect(address)
  for (let left = TASKS; left > 0; left -= 1_000)
    await client.submitMany(Array.from({ length: Math.min(left, 1_000) }, (_, i) => ({ type: 'bench', input: { i } })))
  await client.close()
}

const measure = async (url: string): Promise<number> => {
  const to = new URL('api/v1/claim', url)
  const body = JSON.stringify({ workerId: 'bench', types: ['bench'], leaseTtl: '10m' })
  let claimed = 0
  const one = async (): Promise<void> => {
    while ((await post(to, body)).includes('"token"')) claimed++
  }
  const began = performance.now()
  await Promise.all(Array.from({ length: IN_FLIGHT }, one))
  const seconds = (performance.now() - began) / 1_000
  if (claimed !== TASKS) throw new Error(`claimed ${claimed} of ${TASKS}`)
  return claimed / seconds
}

try {
  await submitTasks()
  const main = fileURLToPath(new URL('../src/cli/main.ts', import.meta.url))
  const server = spawn(process.execPath, [main, 'serve', '--port', '0', '--json', '--url', address], {
    env: { ...process.env, HOLDFAST_TOKEN: TOKEN },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = (await once(createInterface(server.stdout), 'line')) as [string]
  const rate = await measure((JSON.parse(line) as { url: string }).url)
  console.log(
    `${Math.round(rate).toLocaleString('en')} claims/s of one task over HTTP, ${IN_FLIGHT} in flight, SQLite, ${TASKS} tasks`,
  )
  server.kill('SIGTERM')
  await once(server, 'exit')
} finally {
  agent.destroy()
  rmSync(folder, { recursive: true, force: true })
}
