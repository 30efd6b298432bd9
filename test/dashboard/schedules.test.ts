/** Schedules from their creation to their deletion, with what fired and when the next slots are. */
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { closeBrowser, hasBrowser, openStage, type Stage } from './stage.ts'

describe.skipIf(!hasBrowser)('schedules', () => {
  let stage: Stage
  beforeEach(async () => {
    stage = await openStage()
  })
  afterEach(async () => {
    expect(stage.complaints.filter((text) => !/status of 4\d\d/.test(text))).toEqual([])
    await stage.close()
  })
  afterAll(closeBrowser)

  test('one is created, changed, paused, resumed, triggered and deleted', async () => {
    const page = await stage.open('#/schedules')
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'New schedule' }).click()
    await dialog.getByLabel('Id').fill('nightly')
    await dialog.getByLabel('Type').fill('report')
    await dialog.getByLabel('Queue').fill('reports')
    await dialog.getByLabel('Cron').fill('0 3 * *')
    await dialog.getByLabel('Timezone').fill('Europe/Berlin')
    await dialog.getByLabel('Input').fill('{ "of": "day" }')
    await dialog.getByRole('button', { name: 'Create the schedule' }).click()
    // The server refuses four fields, and the dialog stays open.
    await dialog.getByRole('alert').getByText('five are needed').waitFor()
    await dialog.getByLabel('Cron').fill('0 3 * * *')
    await dialog.getByRole('button', { name: 'Create the schedule' }).click()
    await page.waitForURL(/#\/schedules\/nightly$/)
    expect(await stage.client.schedules.get('nightly')).toMatchObject({
      type: 'report',
      cron: '0 3 * * *',
      timezone: 'Europe/Berlin',
      options: { queue: 'reports' },
    })
    await page.getByRole('button', { name: 'Change' }).click()
    await dialog.getByLabel('When').selectOption('fixed-delay')
    await dialog.getByLabel('Interval').fill('20m')
    await dialog.getByRole('button', { name: 'Save the schedule' }).click()
    await page.locator('[data-panel=plan]').getByText('every 20 m').waitFor()
    await page.locator('[data-panel=plan]').getByText('after the last run has ended').waitFor()
    expect(await stage.client.schedules.get('nightly')).toMatchObject({ mode: 'fixed-delay', every: 1_200_000 })
    expect((await stage.client.schedules.get('nightly')).input).toEqual({ of: 'day' })

    await page.getByRole('button', { name: 'Pause' }).click()
    await dialog.getByRole('button', { name: 'Pause the schedule' }).click()
    await page.locator('h1').getByText('paused').waitFor()
    await page.getByRole('button', { name: 'Resume' }).click()
    await dialog.getByRole('button', { name: 'Resume the schedule' }).click()
    await page.locator('h1').getByText('paused').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Trigger' }).click()
    await dialog.getByRole('button', { name: 'Create one task' }).click()
    await page.getByRole('heading', { level: 1, name: 'report' }).waitFor()
    await page.getByRole('link', { name: 'nightly' }).click()
    await page.getByRole('button', { name: 'Delete' }).click()
    await dialog.getByRole('button', { name: 'Delete the schedule' }).click()
    await page.getByText('Nothing recurs').waitFor()
    expect(await stage.client.schedules.list()).toEqual([])
  })

  test('the next slots are those of its own timezone, which is named', async () => {
    await stage.client.schedules.create({
      id: 'tokyo',
      type: 'a',
      input: 1,
      cron: '15 9 * * *',
      timezone: 'Asia/Tokyo',
    })
    const page = await stage.open('#/schedules', { timezoneId: 'America/New_York' })
    const row = page.locator('[data-schedule=tokyo]')
    await expect.poll(() => row.locator('.slots li').count()).toBe(4)
    for (const slot of await row.locator('.slots li').allTextContents()) expect(slot).toMatch(/09:15$/)
    await row.locator('.next-runs').getByText('Asia/Tokyo').waitFor()
  })

  test('what fired is listed with its task, and what was skipped with the reason', async () => {
    await stage.client.schedules.create({ id: 'often', type: 'slow', input: 1, every: '400ms' })
    const worker = stage.client.worker({ id: 'worker-7' }).handle('slow', () => new Promise(() => {}))
    void worker.run()
    const page = await stage.open('#/schedules/often')
    const past = page.locator('[data-panel=past]')
    await past.getByText('Skipped: the task before it had not ended').first().waitFor()
    // So that the slot with the task stays among the last twenty.
    await stage.client.schedules.pause('often')
    const [task] = (await stage.client.list()).tasks
    await past.getByRole('link', { name: task!.id }).click()
    await page.getByRole('heading', { level: 1, name: 'slow' }).waitFor()
    await worker.stop({ timeout: '1ms' })
  })

  test('one with a fixed delay says that it waits for the end of its task', async () => {
    await stage.client.schedules.create({ id: 'poll', type: 'a', input: 1, every: '50ms', mode: 'fixed-delay' })
    // Whoever works fires schedules too; nobody runs their tasks.
    const worker = stage.client.worker().handle('other', () => null)
    const running = worker.run()
    await expect.poll(async () => (await stage.client.schedules.get('poll')).lastTaskId).not.toBeNull()
    const page = await stage.open('#/schedules')
    await page.locator('[data-schedule=poll]').getByText('50 ms after its task has ended').waitFor()
    await worker.stop()
    await running
  })
})
