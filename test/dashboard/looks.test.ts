/** Readable for everybody: contrast on real elements in both themes, nothing beyond the edge of a phone; and pictures of it. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { addLongNames, type Busy, beBusy } from './busy.ts'
import { faintTexts, sticksOut } from './looks.ts'
import { closeBrowser, hasBrowser, openStage, type Stage } from './stage.ts'

const ROOT = join(import.meta.dirname, '../..')
/** Those of the README are made anew by HOLDFAST_PICTURES=1, after a minute of work that the charts can show. */
const isForReadme = process.env['HOLDFAST_PICTURES'] === '1'
const FOLDER = join(ROOT, isForReadme ? 'docs/images' : 'test-artefacts/dashboard')
const SECONDS = isForReadme ? 90 : 3

describe.skipIf(!hasBrowser)('the looks', () => {
  let stage: Stage
  let busy: Busy
  let hashes: readonly string[]

  beforeAll(async () => {
    stage = await openStage()
    busy = await beBusy(stage.client)
    hashes = ['', 'queues', 'tasks', 'dead', 'schedules', 'workers', `tasks/${busy.story}`]
    // A picture of it would frighten people.
    if (!isForReadme) hashes = [...hashes, `tasks/${await addLongNames(stage.client)}`]
  })
  afterAll(async () => {
    await busy?.stop()
    await stage?.close()
    await closeBrowser()
  })

  const show = async (page: Page, hash: string): Promise<void> => {
    await page.goto(`${stage.address}#/${hash}`)
    await page.locator('main :is(.panel, .tiles)').first().waitFor()
  }

  for (const colorScheme of ['light', 'dark'] as const) {
    test(`every text of every page has the contrast of WCAG AA, ${colorScheme}`, async () => {
      const page = await stage.open('#/', { colorScheme })
      for (const hash of hashes) {
        await show(page, hash)
        expect(await faintTexts(page), hash).toEqual([])
      }
      await page.locator('.submit').click()
      await page.getByRole('dialog').waitFor()
      expect(await faintTexts(page), 'the dialog').toEqual([])
    })
  }

  test('a text that is too faint would be noticed', async () => {
    const page = await stage.open('#/queues')
    await show(page, 'queues')
    await page.evaluate(`document.querySelector('main h1').style.color = '#9a9a9a'`)
    expect((await faintTexts(page)).map(({ text }) => text)).toEqual(['Queues'])
  })

  test('nothing is wider than a phone of 390 pixels, whatever the names and payloads', async () => {
    const page = await stage.open('#/', { viewport: { width: 390, height: 844 } })
    for (const hash of hashes) {
      await show(page, hash)
      expect(await sticksOut(page), hash).toEqual([])
    }
    await page.getByText('Menu').click()
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Workers' }).click()
    await page.getByRole('heading', { level: 1, name: 'Workers' }).waitFor()
    await page.locator('.submit').click()
    await page.getByRole('dialog').waitFor()
    expect(await sticksOut(page), 'the dialog').toEqual([])
    await page.evaluate(`document.querySelector('main').style.width = '500px'`)
    expect(await sticksOut(page), 'planted').not.toEqual([])
  })

  test('pictures are taken of it', { timeout: (SECONDS + 60) * 1_000 }, async () => {
    mkdirSync(FOLDER, { recursive: true })
    const page = await stage.open('#/', { colorScheme: 'light', viewport: { width: 1240, height: 780 } })
    await expect
      .poll(() => page.evaluate(`performance.now() / 1000`), { timeout: (SECONDS + 30) * 1_000 })
      .toBeGreaterThan(SECONDS)
    await page.screenshot({ path: join(FOLDER, 'dashboard-light.png') })
    await page.emulateMedia({ colorScheme: 'dark' })
    await page.setViewportSize({ width: 1240, height: 800 })
    await show(page, `tasks/${busy.story}`)
    await page.locator('.why').waitFor()
    await page.screenshot({ path: join(FOLDER, 'dashboard-dark.png') })
  })
})
