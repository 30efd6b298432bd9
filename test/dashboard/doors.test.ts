/** Who comes in, with a page where something is wrong; who did what; and the way out. */
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { EVERYTHING, Tokens, VIEWER } from '../../src/http/index.ts'
import { closeBrowser, hasBrowser, openStage, type Stage } from './stage.ts'

const ANN = 'the-token-of-ann-0123456789'
const VIC = 'the-token-of-vic-0123456789'

describe.skipIf(!hasBrowser)('a browser', () => {
  let stage: Stage
  beforeEach(async () => {
    const tokens = new Tokens([
      { token: ANN, rights: EVERYTHING, name: 'ann' },
      { token: VIC, rights: VIEWER, name: 'vic' },
    ])
    stage = await openStage({ authorize: tokens.authorize, tokens })
  })
  afterEach(() => stage.close())
  afterAll(closeBrowser)

  test('with a link that is out of date gets a page that says so, and comes in with the right token', async () => {
    const page = await stage.open('login?token=a-token-of-an-earlier-start')
    await page.getByRole('alert').getByText('The token in this link is not valid').waitFor()
    await page.getByLabel('Token').fill(ANN)
    await page.getByRole('button', { name: 'Open the dashboard' }).click()
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    // It is logged in: the same link leads to the overview.
    await page.goto(`${stage.address}login?token=a-token-of-an-earlier-start`)
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  })

  test('says who it is, logs out, and its name is in the history of what it did', async () => {
    const { id } = await stage.client.submit('greet', {}, { delay: '1h' })
    const page = await stage.open(`login?token=${ANN}`)
    await page.goto(`${stage.address}#/tasks/${id}`)
    await page.getByRole('button', { name: 'Run now' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Run now' }).click()
    await page.locator('h1 .pill[data-view=ready]').waitFor()
    expect((await stage.client.get(id)).history.at(-1)!.by).toBe('ann')
    await page.locator('.moves').getByText('ann').waitFor()
    await page.locator('.caller').getByRole('button', { name: 'Log out' }).click()
    await page.getByLabel('Token').waitFor()
    await page.reload()
    await page.getByLabel('Token').waitFor()
  })

  test('is logged out by an operator, and a viewer has no such button', async () => {
    const viewer = await stage.open(`login?token=${VIC}`)
    await viewer.locator('.connection[data-state=live]').waitFor()
    expect(await viewer.getByRole('link', { name: 'vic' }).count()).toBe(0)
    const page = await stage.open(`login?token=${ANN}`)
    await page.getByRole('link', { name: 'ann' }).click()
    await page.locator('[data-session]').filter({ hasText: 'this browser' }).getByText('ann').waitFor()
    await page.locator('[data-session]').getByRole('button', { name: 'Log out vic' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Log out' }).click()
    await expect.poll(() => page.locator('[data-session]').count()).toBe(1)
    await viewer.getByLabel('Token').waitFor()
  })
})
