/** `holdfast/remote` against `holdfast serve`: the server as a user starts it, and the client over a real connection. */
import { expect, it } from 'vitest'
import { connectRemote } from '../../src/remote/index.ts'
import { exitOf, linesOf, makeFolder } from './shell.ts'

const TOKEN = 'a-token-for-a-test-0123456789'

it('submits, works and waits over a real connection, and waits while the server is away', async () => {
  const folder = makeFolder()
  const serve = async (port: string): Promise<{ url: string; stop(): Promise<unknown> }> => {
    const child = folder.start(['serve', '--port', port], { env: { HOLDFAST_TOKEN: TOKEN } })
    const url = /http:\/\/[\d.]+:\d+/.exec(await linesOf(child).until(/http:\/\/[\d.]+:\d+/))![0]
    const stop = (): Promise<unknown> => {
      const exited = exitOf(child)
      child.kill('SIGTERM')
      return exited
    }
    return { url, stop }
  }
  await folder.run(['init'])
  const first = await serve('0')
  const remote = connectRemote({ url: first.url, token: TOKEN, retries: 50 })
  const stopping = new AbortController()
  const working = remote
    .worker({ wait: '2s' })
    .handle('double', (input) => (input as number) * 2)
    .run({ signal: stopping.signal })
  expect(await remote.wait(await remote.submit('double', 21))).toBe(42)
  await first.stop()
  const submitted = remote.submit('double', 4)
  const second = await serve(new URL(first.url).port)
  expect(await remote.wait(await submitted)).toBe(8)
  stopping.abort()
  await working
  await second.stop()
})
