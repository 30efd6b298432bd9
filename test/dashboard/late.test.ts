/** What comes late: counts while somebody types, responses after the page was left, a second click, keys beside an open dialog. */
import type { Page, Route } from 'playwright-core'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { PermanentError } from '../../src/index.ts'
import { closeBrowser, gate, hasBrowser, openStage, type Stage } from './stage.ts'

/** Holds the response of the next such request until `open` is called. It is fetched at once: what it says gets old. */
const holdNext = async (
  page: Page,
  method: string,
  path: RegExp,
): Promise<{ open(): Promise<void>; asked(): number }> => {
  const { opened, open } = gate()
  let asked = 0
  let done = (): void => {}
  const delivered = new Promise<void>((resolve) => {
    done = resolve
  })
  await page.route(path, async (route: Route) => {
    if (route.request().method() !== method) return route.fallback()
    asked++
    if (asked > 1) return route.fallback()
    const response = await route.fetch()
    await opened
    await route.fulfill({ response })
    done()
  })
  return {
    asked: () => asked,
    async open() {
      open()
      await delivered
      await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
    },
  }
}

describe.skipIf(!hasBrowser)('what comes late', () => {
  let stage: Stage
  beforeEach(async () => {
    stage = await openStage()
  })
  afterEach(() => stage.close())
  afterAll(closeBrowser)

  test('does not clear a filter that is being typed', async () => {
    const page = await stage.open('#/tasks')
    const field = page.getByLabel('Type', { exact: true })
    await field.pressSequentially('send_')
    await stage.client.submit('greet', {}, { queue: 'new-queue' })
    await page.locator('option', { hasText: 'new-queue' }).first().waitFor({ state: 'attached' })
    expect(await field.inputValue()).toBe('send_')
    await field.pressSequentially('mail')
    await field.press('Enter')
    await page.waitForURL(/type=send_mail/)
  })

  test('is no dialog above another page, and no key goes past an open dialog', async () => {
    const { id } = await stage.client.submit('greet', {}, { delay: '1h' })
    const page = await stage.open('#/tasks')
    await page.locator(`[data-task="${id}"] [data-row]`).click()
    await page.getByRole('button', { name: 'Cancel' }).click()
    const title = page.getByRole('dialog').getByRole('heading', { name: 'Cancel this task?' })
    await title.click()
    for (const key of ['n', 'g', 't', '?', 'l']) await page.keyboard.press(key)
    await title.waitFor()
    expect(page.url()).toContain(id)
    await page.goBack()
    await page.locator('dialog').waitFor({ state: 'detached' })
    expect((await stage.client.get(id)).status).toBe('pending')
  })

  test('does not call back somebody who has gone on', async () => {
    const page = await stage.open('#/tasks')
    const submit = await holdNext(page, 'POST', /\/tasks$/)
    await page.getByRole('button', { name: 'Submit' }).click()
    await page.getByRole('dialog').getByLabel('Type').fill('greet')
    await page.getByRole('dialog').getByRole('button', { name: 'Submit' }).dblclick()
    await expect.poll(submit.asked).toBe(1)
    await page.keyboard.press('Escape')
    const search = await holdNext(page, 'GET', /\/tasks\/by-key/)
    await page.getByRole('searchbox').fill('greet')
    await page.getByRole('searchbox').press('Enter')
    await expect.poll(search.asked).toBe(1)
    await page.keyboard.press('Tab')
    await page.getByRole('link', { name: 'Queues' }).click()
    await page.getByRole('heading', { level: 1, name: 'Queues' }).waitFor()
    await search.open()
    await submit.open()
    await page.getByText('Submitted').waitFor()
    expect(page.url()).toMatch(/#\/queues$/)
    expect((await stage.client.count({})).count).toBe(1)
  })

  test('is no error of a dialog that was closed in the next dialog: it is told on its own', async () => {
    const { id } = await stage.client.submit('greet', {}, { delay: '1h' })
    const page = await stage.open(`#/tasks/${id}`)
    const run = await holdNext(page, 'POST', /\/run-now$/)
    await page.getByRole('button', { name: 'Run now' }).click()
    await stage.client.cancel(id)
    await page.getByRole('dialog').getByRole('button', { name: 'Run now' }).click()
    await expect.poll(run.asked).toBe(1)
    await page.keyboard.press('Escape')
    await page.keyboard.press('?')
    const keys = page.getByRole('dialog', { name: 'Keys' })
    await keys.waitFor()
    await run.open()
    await page.locator('.toast').getByText('cancelled', { exact: false }).waitFor()
    expect(await keys.locator('.failure, [role=alert]').count()).toBe(0)
  })

  test('is a preview of a group asked for twice: there is one question, and one job', async () => {
    const worker = stage.client.worker().handle('charge', () => {
      throw new PermanentError('declined')
    })
    await stage.client.submitMany([1, 2, 3].map((input) => ({ type: 'charge', input })))
    await worker.drain()
    const page = await stage.open('#/dead')
    const preview = await holdNext(page, 'POST', /\/replay\/preview$/)
    await page.getByRole('button', { name: 'Replay Permanent' }).dblclick()
    await page.getByRole('dialog').getByLabel('Canary').fill('')
    await preview.open()
    expect(await page.getByRole('dialog').getByLabel('Canary').inputValue()).toBe('')
    await page.getByRole('dialog').getByRole('button', { name: 'Replay 3 tasks' }).dblclick()
    await page.getByText('Replayed 3 of 3').waitFor()
    expect((await stage.client.count({ status: 'ready' })).count).toBe(3)
    const { jobs } = (await (await fetch(`${stage.address}api/v1/jobs`)).json()) as { jobs: object[] }
    expect(jobs).toHaveLength(1)
  })

  test('is a response from before an action: the state after it stays', async () => {
    const { id } = await stage.client.submit('greet', {}, { delay: '1h' })
    const page = await stage.open(`#/tasks/${id}`)
    await page.locator('h1 .pill[data-view=scheduled]').waitFor()
    const old = await holdNext(page, 'GET', new RegExp(`/tasks/${id}$`))
    await expect.poll(old.asked).toBe(1)
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel the task' }).click()
    await page.locator('h1 .pill[data-view=cancelled]').waitFor()
    await old.open()
    expect(await page.locator('h1 .pill').getAttribute('data-view')).toBe('cancelled')
  })

  test('is a list that took two seconds: it goes on ten seconds later', async () => {
    await stage.client.submit('greet', {})
    const page = await stage.open('#/queues')
    await page.locator('.connection[data-state=live]').waitFor()
    await page.clock.install()
    const list = await holdNext(page, 'GET', /\/tasks\?/)
    await page.getByRole('navigation').getByRole('link', { name: 'Tasks' }).click()
    await expect.poll(list.asked).toBe(1)
    await page.clock.fastForward(2_000)
    await list.open()
    await expect.poll(() => page.locator('[data-task]').count()).toBe(1)
    await stage.client.submit('greet', {})
    await page.clock.fastForward(10_000)
    await expect.poll(() => page.locator('[data-task]').count()).toBe(2)
  })

  test('is a worker that took the task while its dialog was open: the answer says what became of it', async () => {
    const { id } = await stage.client.submit('greet', {})
    const page = await stage.open(`#/tasks/${id}`)
    await page.getByRole('button', { name: 'Cancel' }).click()
    await stage.client.claim(id, { workerId: 'w' })
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel the task' }).click()
    await page.locator('.toast').getByText('Asked to stop').waitFor()
  })
})
