/** What is wrong is on every page, with who, when and why; background jobs are too. */
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { PermanentError } from '../../src/index.ts'
import { closeBrowser, hasBrowser, openStage, type Stage } from './stage.ts'

describe.skipIf(!hasBrowser)('the health of the store', () => {
  let stage: Stage
  beforeEach(async () => {
    stage = await openStage()
  })
  afterEach(() => stage.close())
  afterAll(closeBrowser)

  test('is one line on every page', async () => {
    const page = await stage.open('#/schedules')
    await page.getByText('Everything is well').waitFor()
    expect(await page.locator('link[rel=icon]').getAttribute('href')).toBe('./icon.svg')
    expect(stage.complaints).toEqual([])
  })

  test('says what is wrong and what to do, counts it in the title, and changes the icon', async () => {
    await stage.client.submit('thumbnail', {}, { queue: 'media' })
    const page = await stage.open('#/schedules')
    const strip = page.locator('.health')
    await strip
      .getByText("no live worker serves it with a handler for 'thumbnail'")
      .first()
      .waitFor({ state: 'attached' })
    await strip.locator('summary').click()
    await strip.getByText('holdfast worker MODULE --queue media').waitFor()
    await expect.poll(() => page.title()).toBe('(1) Schedules · Holdfast')
    expect(await page.locator('link[rel=icon]').getAttribute('href')).toBe('./icon-alert.svg')
    expect(stage.complaints).toEqual([])
  })

  test('names paused queues and groups, who paused them and why', async () => {
    await stage.client.submit('sync', {}, { queue: 'sync', group: 'acme' })
    await stage.client.queue('sync').pause({ reason: 'a new release' })
    await stage.client.queue('sync').pause({ group: 'acme', reason: 'unpaid' })
    const page = await stage.open('#/tasks')
    await page.locator('.health summary').click()
    await page
      .locator('.health li')
      .filter({ hasText: 'Queue sync is paused, 1 task waits' })
      .getByText('by tester')
      .waitFor()
    await page.locator('.health li').filter({ hasText: 'a new release' }).waitFor()
    await page
      .locator('.health li')
      .filter({ hasText: 'Group acme of queue sync is paused' })
      .getByText('unpaid')
      .waitFor()
  })

  test('a lost connection is a banner and disables every action until it is back', async () => {
    await stage.client.submit('greet', {}, { queue: 'mail' })
    const page = await stage.open('#/queues')
    await page.locator('.connection[data-state=live]').waitFor()
    const submit = page.getByRole('button', { name: 'Submit' })
    expect(await submit.isEnabled()).toBe(true)
    await page.context().setOffline(true)
    await page.locator('.lost').waitFor({ timeout: 30_000 })
    await page.locator('.health').getByText('Not known').waitFor()
    expect(await submit.isDisabled()).toBe(true)
    expect(await page.getByRole('button', { name: 'Pause mail' }).isDisabled()).toBe(true)
    await expect.poll(() => page.title()).toMatch(/^\(\d+\)/)
    await page.context().setOffline(false)
    await page.locator('.lost').waitFor({ state: 'detached', timeout: 30_000 })
    await expect.poll(() => submit.isEnabled()).toBe(true)
  })
})

describe.skipIf(!hasBrowser)('a background job', () => {
  afterAll(closeBrowser)

  test('is on every page, also after a reload, can be stopped, and its outcome is kept', async () => {
    const stage = await openStage()
    try {
      const worker = stage.client.worker().handle('charge', () => {
        throw new PermanentError('declined')
      })
      await stage.client.submitMany([1, 2, 3].map((input) => ({ type: 'charge', input })))
      await worker.drain()
      const page = await stage.open('#/dead')
      await page.locator('[data-group]').getByRole('button', { name: 'Replay' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Replay 3 tasks' }).click()
      // Nobody runs the canary, so the job waits for it.
      const tray = page.locator('.tray')
      await tray.getByText('Replaying: 1 of 3, waiting for the canary').waitFor()
      for (const hash of ['workers', 'tasks', '']) {
        await page.goto(`${stage.address}#/${hash}`)
        await page.reload()
        await tray.getByText('Replaying: 1 of 3').waitFor()
      }
      await tray.getByRole('button', { name: 'Stop' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Stop the job' }).click()
      await tray.waitFor({ state: 'detached' })
      await page.goto(`${stage.address}#/jobs`)
      await page.locator('[data-job]').getByText('Replayed 1 of').waitFor()
      await page.reload()
      await page.locator('[data-job][data-state=done]').waitFor()
      expect(stage.complaints).toEqual([])
    } finally {
      await stage.close()
    }
  })
})
