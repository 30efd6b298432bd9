/** Everything that a task carries was written by somebody else: none of it may become more than text. */
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { PermanentError } from '../../src/index.ts'
import { DO, HOSTILE, harmIn, poison } from './hostile.ts'
import { closeBrowser, gate, hasBrowser, openStage, type Stage } from './stage.ts'

/** The policy would stop most of it: without it, the pages must hold by themselves. */
const UNGUARDED = { bypassCSP: true }

const PAGES = ['', 'queues', 'tasks', 'dead', 'schedules', 'schedules/nightly', 'workers', 'types/greet', 'sessions']

const entry = { n: 1, at: new Date().toISOString(), move: 'x', to: 'pending', by: 'x', id: 'x', type: 'x', queue: 'x' }
const counts = { ready: 1, scheduled: 1, retrying: 1, running: 1, completed: 1, failed: 1 }
const pauseBy = (text: string) => ({ at: new Date().toISOString(), by: text, reason: text })
const flow = (text: string) => ({
  pause: pauseBy(text),
  groupPauses: { [text]: pauseBy(text) },
  pausedGroups: [text],
  limits: { rate: text, concurrency: 1 },
})
/** What the server tells by itself, hostile in each of its texts. */
const STREAM = [
  ['stats', { queues: HOSTILE.map((queue) => ({ ...counts, ...flow(queue), queue, paused: true, capped: HOSTILE })) }],
  ['changes', { changes: HOSTILE.map((move, n) => ({ ...(poison(entry, '', { n }) as object), move })), skipped: 0 }],
]
  .map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`)
  .join('')

describe.skipIf(!hasBrowser)('hostile text', () => {
  let stage: Stage
  beforeEach(async () => {
    stage = await openStage()
  })
  afterEach(() => stage.close())
  afterAll(closeBrowser)

  const expectNoHarm = async (page: Page): Promise<void> => {
    await page.locator('main h1').waitFor()
    expect(await harmIn(page), page.url()).toBeNull()
  }

  test('in input, output, progress, error, tag, key and worker id is shown as it is', async () => {
    const all = HOSTILE.join('\n')
    const tags = Object.fromEntries(HOSTILE.slice(0, 20).map((text, n) => [`${text.slice(0, 50)}${n}`, text]))
    const release = gate()
    const worker = stage.client
      .worker({ id: HOSTILE[2]!, concurrency: 3 })
      .handle('dies', () => {
        throw new PermanentError(all)
      })
      .handle('ends', () => HOSTILE)
      .handle('runs', async (_, ctx) => {
        await ctx.progress({ [HOSTILE[2]!]: HOSTILE })
        await release.opened
      })
    const options = { tags, idempotencyKey: HOSTILE[3]! }
    const { id: dead } = await stage.client.submit('dies', { [HOSTILE[2]!]: HOSTILE }, options)
    const { id: ended } = await stage.client.submit('ends', HOSTILE)
    const { id: runs } = await stage.client.submit('runs', HOSTILE)
    const running = worker.run()
    await expect.poll(async () => (await stage.client.get(dead)).status).toBe('failed')
    await expect.poll(async () => (await stage.client.get(ended)).status).toBe('completed')
    await expect.poll(async () => (await stage.client.get(runs)).progress).not.toBeNull()

    const page = await stage.open('#/', UNGUARDED)
    for (const hash of [...PAGES, `tasks/${dead}`, `tasks/${ended}`, `tasks/${runs}`]) {
      await page.goto(`${stage.address}#/${hash}`)
      await expectNoHarm(page)
    }
    await page.goto(`${stage.address}#/tasks/${dead}`)
    const error = page.locator('[data-panel=error] .bad')
    await error.waitFor()
    expect(await error.textContent()).toContain(HOSTILE[0])
    // An override of direction is shown, and does nothing.
    expect(await error.textContent()).toContain(`[U+202E]>${DO}`)
    expect(await page.locator('body').textContent()).not.toMatch(/[\u202a-\u202e\u2066-\u2069]/)
    const input = await page.locator('[data-panel=input] .json').textContent()
    expect(JSON.parse(input!)).toEqual({ [HOSTILE[2]!]: HOSTILE })
    await page.goto(`${stage.address}#/workers`)
    await page.getByText(HOSTILE[2]!).first().waitFor()
    await expectNoHarm(page)
    release.open()
    await worker.stop()
    await running
  })

  test('in every field of every answer, type and queue too, makes no element and runs nothing', async () => {
    const { id } = await stage.client.submit('greet', {}, { tags: { team: 'infra' }, delay: '1h' })
    const dies = stage.client.worker().handle('dies', () => {
      throw new PermanentError('gone')
    })
    await stage.client.submit('dies', {})
    await dies.drain()
    await stage.client.schedules.create({ id: 'nightly', type: 'report', input: {}, cron: '0 3 * * *' })
    const page = await stage.open('#/', UNGUARDED)
    await page.route('**/api/v1/**', async (route) => {
      if (route.request().url().includes('/changes'))
        return route.fulfill({ contentType: 'text/event-stream', body: STREAM })
      const response = await route.fetch()
      await route.fulfill({ response, json: poison(await response.json()) })
    })
    await page.reload()
    for (let round = 0; round < 2; round++) {
      for (const hash of [...PAGES, `tasks/${id}`]) {
        await page.goto(`${stage.address}#/${hash}`)
        await page.locator('main :is(.panel, .tiles, .empty)').first().waitFor()
        if (hash === '') await page.locator('[data-panel=recent] li').first().waitFor()
        await expectNoHarm(page)
      }
    }
    await page.goto(`${stage.address}#/tasks/${id}`)
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('dialog').waitFor()
    await expectNoHarm(page)
  })

  test('in the address is a filter or an unknown page', async () => {
    const page = await stage.open('#/', UNGUARDED)
    for (const text of HOSTILE.slice(0, 12)) {
      for (const hash of [
        `tasks/${encodeURIComponent(text)}`,
        `tasks?tag=${encodeURIComponent(text)}`,
        encodeURIComponent(text),
      ]) {
        await page.goto(`${stage.address}#/${hash}`)
        await page.locator('main').waitFor()
        expect(await harmIn(page), hash).toBeNull()
      }
    }
  })

  test('would be noticed', async () => {
    const page = await stage.open('#/', UNGUARDED)
    await page.locator('main h1').waitFor()
    const noticed: string[] = []
    for (const text of HOSTILE.slice(0, 10)) {
      await page.evaluate(`document.querySelector('main').innerHTML = ${JSON.stringify(text)}`)
      const harm = await harmIn(page)
      if (harm !== null) noticed.push(text)
    }
    // A script that is put in as text never runs and is found as an element; closing tags alone are nothing.
    expect(noticed.length).toBeGreaterThan(8)
  })
})
