/** Search, filters, many tasks at once, a queue with limits, and signals: what an operator does on a busy day. */
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { PermanentError } from '../../src/index.ts'
import { closeBrowser, hasBrowser, openStage, type Stage } from './stage.ts'

describe.skipIf(!hasBrowser)('an operator', () => {
  let stage: Stage
  beforeEach(async () => {
    stage = await openStage()
  })
  afterEach(async () => {
    // A key that no task has is asked for before a text is searched.
    expect(stage.complaints.filter((text) => !text.includes('404'))).toEqual([])
    await stage.close()
  })
  afterAll(closeBrowser)

  const fail = async (messages: readonly string[]): Promise<void> => {
    const worker = stage.client.worker().handle('charge_card', (input) => {
      throw new PermanentError(String(input))
    })
    await stage.client.submitMany(messages.map((input) => ({ type: 'charge_card', input })))
    await worker.drain()
  }

  test('opens the tasks of a group of dead letters, ticks some and replays them', async () => {
    await fail(['card 1 declined', 'card 2 declined', 'bank is away'])
    const page = await stage.open('#/dead')
    await page.locator('[data-group]').filter({ hasText: 'card # declined' }).locator('[data-row]').click()
    await page.waitForURL(/error=/)
    await expect.poll(() => page.locator('[data-task]').count()).toBe(2)
    await page.getByLabel('Choose all on this page').check()
    await page.getByText('2 chosen').waitFor()
    await page.getByRole('button', { name: 'Replay the chosen tasks' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Replay 2 tasks' }).click()
    await page.getByText('Replayed 2 of 2').waitFor()
    await expect.poll(async () => (await stage.client.count({ status: 'ready' })).count).toBe(2)
    expect((await stage.client.count({ status: 'dead' })).count).toBe(1)
  })

  test('acts on all that match, after a preview', async () => {
    await stage.client.submitMany([1, 2, 3].map((input) => ({ type: 'digest', input, queue: 'mail' })))
    await stage.client.submit('digest', 4)
    const page = await stage.open('#/tasks?queue=mail')
    await page.getByRole('button', { name: 'All that match…' }).click()
    await page.getByLabel('Cancel').check()
    await page.getByRole('button', { name: 'Preview' }).click()
    await page.getByRole('button', { name: 'Cancel 3 tasks' }).click()
    await page.getByText('Cancelled 3 of 3').waitFor()
    expect((await stage.client.count({ status: 'cancelled' })).count).toBe(3)
    expect((await stage.client.count({ status: 'ready' })).count).toBe(1)
  })

  test('finds a task by the short id that is shown, by part of a type and by text of its error', async () => {
    await fail(['card 4711 was declined', 'bank is away'])
    const { id } = await stage.client.submit('send_reminder', {})
    const page = await stage.open('#/tasks')
    const rows = page.locator('[data-task]')
    for (const [text, count] of [
      [`…${id.slice(-8)}`, 1],
      ['remind', 1],
      ['CARD 4711', 1],
      ['charge', 2],
    ] as const) {
      await page.goto(`${stage.address}#/tasks`)
      await expect.poll(() => rows.count()).toBe(3)
      await page.getByRole('searchbox').fill(text)
      await page.keyboard.press('Enter')
      await page
        .locator('.chip')
        .filter({ hasText: text.replace('…', '') })
        .waitFor()
      await expect.poll(() => rows.count()).toBe(count)
    }
  })

  test('narrows by time, sorts, saves the filter and returns to it by the search key', async () => {
    await stage.client.submitMany([1, 2].map((input) => ({ type: 'digest', input, queue: 'mail' })))
    const page = await stage.open('#/tasks?queue=mail')
    await page.locator('[data-task]').first().waitFor()
    const newest = await page.locator('[data-task]').first().getAttribute('data-task')
    await page.getByRole('combobox', { name: 'Created' }).selectOption('1h')
    await page.waitForURL(/since=1h/)
    await page.getByRole('link', { name: 'Created ↓' }).click()
    await page.waitForURL(/order=oldest/)
    await expect.poll(() => page.locator('[data-task]').last().getAttribute('data-task')).toBe(newest)
    await page.getByRole('link', { name: 'Ran' }).click()
    await page.getByRole('heading', { name: 'Oldest first, this page by run time' }).waitFor()
    await page.getByRole('button', { name: 'Save filter' }).click()
    await page.getByRole('dialog').getByLabel('Name').fill('mail of this hour')
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await page.goto(`${stage.address}#/workers`)
    await page.getByRole('heading', { name: 'Workers' }).waitFor()
    await page.keyboard.press('/')
    await page.waitForURL(/queue=mail.*since=1h/)
    await page.reload()
    await page.getByRole('link', { name: 'mail of this hour' }).waitFor()
  })

  test('sees who holds a limited queue, changes the limits, and resumes a group', async () => {
    await stage.client.queue('sync').limit({ concurrency: 4, perGroup: 1 })
    await stage.client.submitMany(
      ['acme', 'acme', 'zeta'].map((group) => ({ type: 'sync', input: 1, queue: 'sync', group })),
    )
    await stage.client.claimNext({ queue: 'sync', workerId: 'worker-7' })
    await stage.client.queue('sync').pause({ group: 'zeta', reason: 'unpaid' })
    const page = await stage.open('#/queues')
    await page.locator('[data-queue=sync] [data-row]').click()
    await page.getByRole('heading', { level: 1, name: 'sync' }).waitFor()
    const limits = page.locator('[data-panel=limits]')
    await limits.getByText('at most 1 running of each group').waitFor()
    await limits.getByRole('row', { name: 'acme 1 of 1 worker-7' }).waitFor()
    await page.locator('[data-panel=pauses]').getByText('unpaid').waitFor()
    await page.getByRole('button', { name: 'Resume group zeta' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Resume the group' }).click()
    await page.locator('[data-panel=pauses]').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Change limits' }).click()
    await page.getByLabel('Running per group').fill('2')
    await page.getByRole('button', { name: 'Set the limits' }).click()
    await limits.getByText('at most 2 running of each group').waitFor()
  })

  test('sees the steps of a parked task and sends the signal that it waits for', async () => {
    const worker = stage.client.worker().handle('order', async (_, ctx) => {
      await ctx.step('reserve', () => ({ seat: 7 }))
      return { paid: await ctx.waitFor('payment') }
    })
    const running = worker.run()
    const { id } = await stage.client.submit('order', {})
    const page = await stage.open(`#/tasks/${id}`)
    await page.locator('h1 .pill[data-view=parked]').waitFor()
    await page.locator('[data-step=done]').getByText('reserve').waitFor()
    await page.getByText('waits for signal payment').first().waitFor()
    await page.getByRole('button', { name: 'Send signal' }).click()
    expect(await page.getByRole('dialog').getByLabel('Signal').inputValue()).toBe('payment')
    await page.getByRole('dialog').getByLabel('Value').fill('{ "amount": 12 }')
    await page.getByRole('dialog').getByRole('button', { name: 'Send the signal' }).click()
    await page.locator('h1 .pill[data-view=completed]').waitFor()
    expect((await stage.client.get(id)).output).toEqual({ paid: { amount: 12 } })
    await worker.stop()
    await running
  })
})
