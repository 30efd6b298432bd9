/** What uses `holdfast serve`: a scraper, a person who watches the dashboard's pages and stream, and a worker over HTTP. */
import { setTimeout as sleep } from 'node:timers/promises'

type Remote = typeof import('../../src/remote/index.ts')

export const TOKEN = 'a-token-of-the-soak-and-nobody-else'
const VISIT_MS = 2_000
const PAGES = ['/metrics', '/api/v1/stats', '/api/v1/tasks?limit=50', '/api/v1/workers', '/api/v1/schedules']

export interface Visitors {
  /** Requests that failed since it was asked last. */
  failures(): number
  stop(): Promise<void>
}

export const startVisitors = async (url: string): Promise<Visitors> => {
  const entry = new URL('../../dist/remote/index.js', import.meta.url)
  const { connectRemote } = (await import(entry.href)) as Remote
  const over = new AbortController()
  let failures = 0
  const count = (): void => {
    if (!over.signal.aborted) failures++
  }

  const ask = (path: string): Promise<Response> =>
    fetch(new URL(path, url), { headers: { authorization: `Bearer ${TOKEN}` }, signal: over.signal })

  const browse = async (): Promise<void> => {
    for (let n = 0; !over.signal.aborted; n++) {
      const answer = await ask(PAGES[n % PAGES.length]!)
      if (!answer.ok) count()
      await answer.arrayBuffer()
      await sleep(VISIT_MS, null, { signal: over.signal })
    }
  }

  const watch = async (): Promise<void> => {
    const { body } = await ask('/api/v1/changes')
    for await (const _ of body ?? []) if (over.signal.aborted) return
  }

  /** What ends by a failure begins again. */
  const always = async (visit: () => Promise<void>): Promise<void> => {
    while (!over.signal.aborted)
      await visit().catch(async () => {
        count()
        await sleep(VISIT_MS)
      })
  }

  const worker = connectRemote({ url, token: TOKEN })
    // A claim that waits is not cut off by the end, so it must not wait long.
    .worker({ queues: ['remote'], concurrency: 2, wait: '2s', onError: count })
    .handle('remote', () => ({ over: 'http' }))
  const visits = [always(browse), always(watch), worker.run().catch(count)]
  return {
    failures() {
      const counted = failures
      failures = 0
      return counted
    },
    async stop() {
      over.abort()
      worker.stop()
      await Promise.all(visits)
    },
  }
}
