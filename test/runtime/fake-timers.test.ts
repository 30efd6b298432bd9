/** A test that fakes the timers of the process for its own code still runs its tasks: a worker does not wait for faked ones. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { connect, silentLogger } from '../../src/index.ts'

test.each(['memory:', 'sqlite:'])(
  'with vi.useFakeTimers() a worker drains, retries and sleeps on %s',
  async (scheme) => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-fake-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const client = await connect(scheme === 'sqlite:' ? `sqlite:${folder}/q.db` : scheme, { logger: silentLogger })
    const plain = await client.submit('double', 21)
    const second = await client.submit('second', 1, { retryPolicy: { base: '10ms', max: '10ms' } })
    await client
      .worker()
      .handle('double', (n: unknown) => 2 * (n as number))
      .drain()
    expect(await client.wait(plain)).toBe(42)
    client
      .worker()
      .handle('second', (_, { attempt }) => {
        if (attempt === 1) throw new Error('not yet')
        return 'now'
      })
      .start()
    expect(await client.wait(second)).toBe('now')
    await client.close()
  },
)
