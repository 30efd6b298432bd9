/** Every file under examples/ is run as its first line says. */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import { startSimulatedS3 } from './servers/simulated-s3/start.ts'

const run = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), 'holdfast-examples-'))
afterAll(() => rmSync(folder, { recursive: true }))

const example = async (name: string, ...args: string[]): Promise<string> => {
  const { stdout } = await run(process.execPath, [join('examples', name), ...args], {
    env: { ...process.env, NO_COLOR: '1' },
  })
  return stdout
}

describe.concurrent('the examples do what they say', () => {
  it('[N01][N02][I13] quick-start sleeps on a rate limit, then completes, and shows its history', async () => {
    const said = await example('quick-start.ts', `sqlite:${join(folder, 'quick.db')}`)
    expect(said).toMatch(/ended with 200/)
    expect(said).toMatch(/1\. submit → pending[\s\S]*3\. reschedule → pending[\s\S]*5\. complete → completed/)
  })

  it('transaction commits a row and its task together, and neither on rollback', async () => {
    const said = await example('transaction.ts', join(folder, 'shop.db'))
    expect(said).toBe('refused: a negative order\n1 orders, 1 receipts to send\n')
  })

  it('web-server answers when order and receipt are saved, and a refused order leaves neither', async () => {
    expect(await example('web-server.ts', join(folder, 'web.db'))).toBe(
      [
        "{ status: 'completed', output: { mailed: 'ann@example.com' } }",
        "422 { error: 'that is no address' }",
        '1 order, 1 receipt',
        '',
      ].join('\n'),
    )
  })

  it('api-client stays below the rate, and one refusal stops everybody', async () => {
    expect(await example('api-client.ts')).toBe('6 answers in 7 calls, one refused\nwithin the rate\n')
  })

  it('cron-report computes one report for each slot, while its worker greets', async () => {
    expect(await example('cron-report.ts')).toBe('17984 primes below 200000\none report for each slot\n')
  })

  it('thumbnails shrinks a picture, and survives one that crashes and one that never ends', async () => {
    expect(await example('thumbnails.ts')).toBe(
      [
        'good: 128 × 64, 8206 bytes',
        "broken: the handler's thread exited with 3",
        'endless: timed out after 1s',
        '',
      ].join('\n'),
    )
  })

  it('s3-workers share a bucket and nothing else', async ({ onTestFinished }) => {
    const s3 = await startSimulatedS3({ latency: 1 })
    onTestFinished(() => s3.remove())
    const { url, credentials } = s3.fresh()
    process.env['AWS_ACCESS_KEY_ID'] = credentials.accessKeyId
    process.env['AWS_SECRET_ACCESS_KEY'] = credentials.secretAccessKey
    expect(await example('s3-workers.ts', url)).toBe('210 words in 20 texts\n')
  })

  it('mounting answers as a route handler and in Hono', async () => {
    expect(await example('mounting.ts')).toBe('hello, route handler\nhello, Hono\n')
  })

  it('testing-handlers passes under node:test', async () => {
    expect(await example('testing-handlers.ts')).toMatch(/pass 1[\s\S]*fail 0/)
  })

  it('json-file-store runs a task from a store of its own', async () => {
    expect(await example('json-file-store.ts', join(folder, 'tasks.json'))).toContain('Hello, Ada\n')
  })

  it('by-hand claims, renews and completes', async () => {
    expect(await example('by-hand.ts', `sqlite:${join(folder, 'hand.db')}`)).toMatch(
      /resize is completed { width: 640, fence: 1 }/,
    )
  })

  it('[I13][I14] rate-limits shows a breaker, a retry and a time window', async () => {
    expect(await example('rate-limits.ts')).toBe(
      'charge { charged: true } after 4 attempts\nrefund { refunded: true } after 2 attempts\ntrade { traded: true } after 2 attempts\n',
    )
  })

  it('per-customer runs two tasks of each customer at once, and the small ones do not wait for the large one', async () => {
    const said = await example('per-customer.ts', `sqlite:${join(folder, 'customers.db')}`)
    expect(said).toMatch(/^acme: at most 2 at once\nglobex: at most [12] at once\ninitech: at most [12] at once\n/)
    const before = Number(/after (\d+) of 20 of acme/.exec(said)?.[1])
    expect(before).toBeLessThanOrEqual(10)
  })

  it('order is charged once, reminded once and shipped once, over several runs', async () => {
    const said = await example('order.ts', `sqlite:${join(folder, 'order.db')}`)
    // Two where the approval comes before the second wait has parked, as on a busy machine.
    expect(said.replace(' 2 runs', ' 3 runs')).toBe(
      [
        'charged 40',
        'reminded the manager',
        'shipped a lamp, approved by Ann',
        'receipt for a lamp: 3 runs, steps: charge, approval, remind, approval after the reminder, ship',
        '',
      ].join('\n'),
    )
  })

  it('fan-out wakes the parent once, when the last of 200 children has ended', async () => {
    expect(await example('fan-out.ts', `sqlite:${join(folder, 'fan-out.db')}`)).toBe('200 children, parent in 2 runs\n')
  })

  it('agent asks the model three times in three runs', async () => {
    expect(await example('agent.ts', `sqlite:${join(folder, 'agent.db')}`)).toBe(
      'Oslo 4°, Rome 18° (3 runs, 3 calls of the model)\n',
    )
  })

  it('debounce runs once for ten edits, and once more for an edit during the run', async () => {
    expect(await example('debounce.ts', `sqlite:${join(folder, 'debounce.db')}`)).toBe(
      [
        "first run: { indexed: 'draft 10' }",
        'an edit meanwhile is another task',
        "second run: { indexed: 'final' }",
        '2 runs for 11 edits',
        '',
      ].join('\n'),
    )
  })
})
