/** Lists hold still while they are read, however much happens in the store. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { closeBrowser, hasBrowser, openStage, type Stage } from './stage.ts'

interface RowAt {
  readonly id: string
  readonly x: number
  readonly y: number
}

/** Submits 50 tasks a second until it is stopped. */
const flood = (stage: Stage): { readonly submitted: () => number; stop(): Promise<void> } => {
  const stopping = new AbortController()
  let submitted = 0
  const submitting = (async () => {
    while (!stopping.signal.aborted) {
      await stage.client.submit(submitted % 2 === 0 ? 'greet' : 'charge_card', { n: submitted++ })
      await pause(20)
    }
  })()
  return {
    submitted: () => submitted,
    stop: () => {
      stopping.abort()
      return submitting
    },
  }
}

/** The row that is drawn under a point of the page. */
const rowUnder = (page: Page, x: number, y: number): Promise<string | null> =>
  page.evaluate(`document.elementFromPoint(${x}, ${y})?.closest('[data-task]')?.dataset.task ?? null`)

/** The n-th row, where its link is drawn. */
const rowAt = (page: Page, n: number): Promise<RowAt> =>
  page.evaluate(`(() => {
    const row = document.querySelectorAll('[data-task]')[${n}]
    const box = row.querySelector('a').getBoundingClientRect()
    return { id: row.dataset.task, x: box.x + box.width / 2, y: box.y + box.height / 2 }
  })()`)

describe.skipIf(!hasBrowser)('a list that changes 50 times a second', () => {
  let stage: Stage
  let busy: ReturnType<typeof flood>
  beforeEach(async () => {
    stage = await openStage()
    await stage.client.submitMany(Array.from({ length: 60 }, (_, input) => ({ type: 'greet', input })))
    busy = flood(stage)
  })
  afterEach(async () => {
    await busy.stop()
    await stage.close()
  })
  afterAll(closeBrowser)

  const more = (count: number): Promise<void> => {
    const from = busy.submitted()
    return expect.poll(() => busy.submitted(), { timeout: 30_000 }).toBeGreaterThan(from + count)
  }

  test('always opens the row that was read, by pointer', async () => {
    const page = await stage.open('#/tasks')
    for (let round = 0; round < 6; round++) {
      await page.goto(`${stage.address}#/tasks`)
      await page.locator('[data-task]').nth(30).waitFor()
      // On the way to the row, a person reads it.
      await page.mouse.move(600, 20 + round)
      const { id, x, y } = await rowAt(page, 2 + round)
      await page.mouse.move(x, y, { steps: 5 })
      expect(await rowUnder(page, x, y)).toBe(id)
      await more(45)
      expect(await rowUnder(page, x, y)).toBe(id)
      await page.mouse.click(x, y)
      await page.waitForURL(`${stage.address}#/tasks/${id}`)
    }
    expect(stage.complaints).toEqual([])
  })

  test('always opens the row that was read, by keys', async () => {
    const page = await stage.open('#/tasks')
    await page.locator('[data-task]').nth(30).waitFor()
    for (let n = 0; n < 3; n++) await page.keyboard.press('j')
    const id: string = await page.evaluate(`document.activeElement.closest('[data-task]').dataset.task`)
    await page.getByRole('button', { name: /^\d+\+? new tasks$/ }).waitFor()
    await more(45)
    await page.keyboard.press('Enter')
    await page.waitForURL(`${stage.address}#/tasks/${id}`)
  })

  test('says how many tasks are new, and shows them when asked', async () => {
    const page = await stage.open('#/tasks')
    const { id, x, y } = await page
      .locator('[data-task]')
      .nth(30)
      .waitFor()
      .then(() => rowAt(page, 3))
    await page.mouse.move(x, y)
    const newer = page.getByRole('button', { name: /^\d+\+? new tasks$/ })
    await newer.waitFor()
    const before = await page.locator('[data-task]').first().getAttribute('data-task')
    await newer.click()
    await expect.poll(() => page.locator('[data-task]').first().getAttribute('data-task')).not.toBe(before)
    expect(id).toBeTruthy()
  })

  test('holds still while a text in it is selected, and goes on when nothing is', async () => {
    const page = await stage.open('#/tasks')
    await page.locator('[data-task]').nth(30).waitFor()
    const first = (): Promise<string | null> => page.locator('[data-task]').first().getAttribute('data-task')
    const moving = await first()
    await expect.poll(first).not.toBe(moving)
    await page.evaluate(`getSelection().selectAllChildren(document.querySelectorAll('[data-task] th')[2])`)
    await page.getByRole('button', { name: /^\d+\+? new tasks$/ }).waitFor()
    const still = await first()
    await more(60)
    expect(await first()).toBe(still)
    await page.evaluate(`getSelection().removeAllRanges()`)
    await expect.poll(first).not.toBe(still)
  })

  test('is paused by a button, and continues by it', async () => {
    const page = await stage.open('#/tasks')
    await page.locator('[data-task]').nth(30).waitFor()
    await page.getByRole('button', { name: 'Pause updates' }).click()
    // Away from the list, so that only the button holds it.
    await page.mouse.move(5, 5)
    const first = (): Promise<string | null> => page.locator('[data-task]').first().getAttribute('data-task')
    const still = await first()
    // A read tells of 50 at most, and on a busy machine there are ten seconds between two.
    await page.getByRole('button', { name: /^\d\d\d+\+? new tasks$/ }).waitFor({ timeout: 45_000 })
    expect(await first()).toBe(still)
    await page.getByRole('button', { name: 'Continue updates' }).click()
    await expect.poll(first).not.toBe(still)
  })

  test('polls where the stream of events is missing', async () => {
    const page = await stage.open('#/dead')
    await page.route(/api\/v1\/changes/, (route) => route.abort())
    await page.goto(`${stage.address}?#/tasks`)
    await page.locator('.connection[data-state=polling]').waitFor()
    const first = (): Promise<string | null> => page.locator('[data-task]').first().getAttribute('data-task')
    const before = await first()
    await expect.poll(first, { timeout: 15_000 }).not.toBe(before)
  })
})
