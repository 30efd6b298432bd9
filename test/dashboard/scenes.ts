/** Dialogs and conditions that a person meets beside the plain pages: to be measured by a test, and to be looked at. */
import type { Page } from 'playwright-core'
import type { Day } from './day.ts'

export interface Scene {
  readonly name: string
  /** The page on which it begins. */
  readonly hash: string
  readonly open: (page: Page) => Promise<void>
  /** It stays open after Escape. */
  readonly close?: (page: Page) => Promise<void>
}

const press =
  (name: string | RegExp) =>
  async (page: Page): Promise<void> => {
    await page.locator('main, .tray').getByRole('button', { name }).first().click()
    await page.getByRole('dialog').waitFor()
  }

const notices = (page: Page): Promise<void> => page.locator('.health summary').click()

export const dialogsOf = ({ parked, stuck }: Pick<Day, 'parked' | 'stuck'>): readonly Scene[] => [
  {
    name: 'submit',
    hash: 'sessions',
    async open(page) {
      await page.locator('.submit').click()
      await page.getByRole('dialog').getByText('More options').click()
    },
  },
  {
    name: 'keys',
    hash: 'sessions',
    async open(page) {
      await page.keyboard.press('?')
      await page.getByRole('dialog').waitFor()
    },
  },
  { name: 'notices', hash: 'sessions', open: notices, close: notices },
  { name: 'pause', hash: 'queues/sync', open: press('Pause') },
  { name: 'limits', hash: 'queues/sync', open: press('Change limits') },
  { name: 'resume-group', hash: 'queues/webhooks', open: press(/^Resume group/) },
  { name: 'schedule-new', hash: 'schedules', open: press('New schedule') },
  { name: 'schedule-change', hash: 'schedules/feed-globex', open: press('Change') },
  { name: 'schedule-delete', hash: 'schedules/feed-globex', open: press('Delete') },
  { name: 'replay-group', hash: 'dead', open: press(/^Replay Error/) },
  { name: 'purge-group', hash: 'dead', open: press(/^Purge Error/) },
  { name: 'signal', hash: `tasks/${parked}`, open: press('Send signal') },
  { name: 'cancel', hash: `tasks/${parked}`, open: press('Cancel') },
  { name: 'replay', hash: `tasks/${stuck}`, open: press('Replay') },
  { name: 'bulk', hash: 'tasks?status=dead', open: press('All that match…') },
  {
    name: 'bulk-confirm',
    hash: 'tasks?status=dead',
    async open(page) {
      await press('All that match…')(page)
      await page.getByLabel('Delete').check()
      await page.getByRole('button', { name: 'Preview' }).click()
      await page.getByRole('heading', { name: 'Delete all that match?' }).waitFor()
    },
  },
  { name: 'save-filter', hash: 'tasks?status=dead', open: press('Save filter') },
  {
    name: 'chosen',
    hash: 'tasks?status=dead',
    async open(page) {
      await page.locator('[data-task] input[type=checkbox]').first().check()
      await page.getByText('1 chosen').waitFor()
    },
    async close(page) {
      await page.locator('[data-task] input[type=checkbox]').first().uncheck()
    },
  },
  {
    name: 'refused',
    hash: `tasks/${stuck}`,
    async open(page) {
      await page.route(/\/replay$/, (route) =>
        route.fulfill({
          status: 409,
          json: { error: { code: 'CANNOT_REPLAY', message: 'the task is not dead any more', fix: 'Read it again.' } },
        }),
      )
      await press('Replay')(page)
      await page.getByRole('dialog').getByRole('button', { name: 'Replay' }).click()
      await page.getByText('not dead any more').waitFor()
    },
  },
  { name: 'stop-job', hash: 'sessions', open: press(/^Stop/) },
]

/** Of a store in which nothing was ever done, and addresses that lead nowhere. */
export const EMPTY: readonly string[] = [
  '',
  'queues',
  'tasks',
  'dead',
  'schedules',
  'workers',
  'jobs',
  'sessions',
  'nowhere',
  'types/nothing',
  'queues/nothing',
  'tasks/01a1f521-a4a4-78fb-abd2-e48dfae8050e',
]

/** Waits for its content. */
export const showPage = async (page: Page, address: string, hash: string): Promise<void> => {
  await page.goto(`${address}#/${hash}`)
  await page.locator('main :is(.panel, .tiles, .empty, .failure)').first().waitFor()
}

export const closeScene = async (page: Page, { close }: Scene): Promise<void> => {
  if (close !== undefined) return close(page)
  await page.keyboard.press('Escape')
  await page.locator('dialog').waitFor({ state: 'detached' })
}
