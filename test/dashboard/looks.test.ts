/** Readable and usable for everybody: axe and contrast in both themes, three widths, the keyboard alone, and without motion. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { EVERYTHING, Tokens } from '../../src/http/index.ts'
import { addLongNames, type Day, liveThroughADay } from './day.ts'
import { axeFindings, brokenWords, faintTexts, sticksOut } from './looks.ts'
import { closeScene, dialogsOf, EMPTY, showPage } from './scenes.ts'
import { closeBrowser, hasBrowser, openStage, type Stage } from './stage.ts'

describe.skipIf(!hasBrowser)('the looks', () => {
  let stage: Stage
  let day: Day
  let hashes: readonly string[]
  /** Names of 120 characters break where they can. */
  let long: string

  beforeAll(async () => {
    day = await liveThroughADay({ minutes: 12 })
    stage = await openStage({ charts: day.charts }, day.client)
    hashes = [
      '',
      'queues',
      'queues/sync',
      'types/deliver_webhook',
      'tasks',
      'tasks?status=dead',
      `tasks/${day.story}`,
      `tasks/${day.parked}`,
      'dead',
      'schedules',
      'schedules/feed-globex',
      'workers',
      'jobs',
      'sessions',
    ]
    await stage.begin('/dead-letters/replay', { type: 'deliver_webhook' }, { canary: 2 })
    long = `tasks/${await addLongNames(day.client)}`
  })
  afterAll(async () => {
    await stage?.close()
    await day?.stop()
    await closeBrowser()
  })

  const show = (page: Page, hash: string): Promise<void> => showPage(page, stage.address, hash)

  /** The themes differ in colours only, and the widths do not differ in these: all rules once at each width, the colours of both themes. */
  const RULES = { wide: { light: 'all', dark: 'colours' }, narrow: { dark: 'all' } } as const

  const measure = async (page: Page, what: string): Promise<void> => {
    const rules = page.viewportSize()!.width < 800 ? RULES.narrow : RULES.wide
    for (const [colorScheme, which] of Object.entries(rules) as ['light', 'all' | 'colours'][]) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      expect(await axeFindings(page, which), `${what}, ${colorScheme}`).toEqual([])
      expect(await faintTexts(page), `${what}, ${colorScheme}`).toEqual([])
    }
  }

  const fits = async (page: Page, what: string): Promise<void> => {
    expect(await sticksOut(page), what).toEqual([])
    expect(await brokenWords(page), what).toEqual([])
  }

  for (const width of [1_440, 390]) {
    const ofWidth = `at ${width} pixels`
    test(`axe finds nothing on any page, every text has the contrast of WCAG AA, nothing sticks out and no word is broken, ${ofWidth}`, async () => {
      const page = await stage.open('#/', { viewport: { width, height: 844 } })
      for (const hash of [...hashes, long]) {
        await show(page, hash)
        await measure(page, hash)
        await fits(page, hash)
      }
      // A refusal is one of the scenes.
      expect(stage.complaints.filter((text) => !text.includes('409'))).toEqual([])
    })

    test(`the same in any dialog, ${ofWidth}`, async () => {
      const page = await stage.open('#/', { viewport: { width, height: 800 } })
      for (const scene of dialogsOf(day)) {
        await show(page, scene.hash)
        await scene.open(page)
        await measure(page, scene.name)
        await fits(page, scene.name)
        await closeScene(page, scene)
      }
    })

    test(`the same in an empty store, before a login, and without a connection, ${ofWidth}`, async () => {
      const tokens = new Tokens([{ token: 'the-token-of-ann-0123456789', rights: EVERYTHING, name: 'ann' }])
      const bare = await openStage({ authorize: tokens.authorize, tokens })
      try {
        const page = await bare.open('login?token=a-link-of-an-earlier-start', { viewport: { width, height: 800 } })
        await page.getByRole('alert').waitFor()
        await measure(page, 'a stale link')
        await page.goto(`${bare.address}login?token=the-token-of-ann-0123456789`)
        for (const hash of EMPTY) {
          await showPage(page, bare.address, hash)
          await measure(page, `empty: ${hash}`)
          await fits(page, hash)
        }
        await page.context().setOffline(true)
        await page.locator('.lost').waitFor()
        await measure(page, 'without a connection')
      } finally {
        await bare.close()
      }
    })
  }

  test('a text that is too faint, and a button without a name, would be noticed', async () => {
    const page = await stage.open('#/schedules')
    await show(page, 'schedules')
    await page.evaluate(`document.querySelector('main h1').style.color = '#9a9a9a'`)
    await page.evaluate(`document.querySelector('main').append(document.createElement('button'))`)
    expect((await faintTexts(page)).map(({ text }) => text)).toEqual(['Schedules'])
    const rules = (await axeFindings(page)).map(({ rule }) => rule)
    expect(rules).toEqual(expect.arrayContaining(['button-name', 'color-contrast']))
  })

  test('nothing is wider than 1024 pixels, and no word is broken in its middle', async () => {
    const page = await stage.open('#/', { viewport: { width: 1_024, height: 844 } })
    for (const hash of [...hashes, long]) {
      await show(page, hash)
      await fits(page, hash)
    }
  })

  test('on a narrow screen the menu leads to the pages; what sticks out, and a broken word, would be noticed', async () => {
    const page = await stage.open('#/', { viewport: { width: 390, height: 844 } })
    await page.getByText('Menu').click()
    expect(await axeFindings(page)).toEqual([])
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Workers' }).click()
    await page.getByRole('heading', { level: 1, name: 'Workers' }).waitFor()
    await page.evaluate(`document.querySelector('main').style.width = '500px'`)
    expect(await sticksOut(page)).not.toEqual([])
    await page.evaluate(`Object.assign(document.querySelector('main h1').style, { width: '30px' })`)
    expect(await brokenWords(page)).toContain('Workers')
  })

  test('the Tab key reaches every control of a page, and shows where it is', async () => {
    const page = await stage.open('#/schedules')
    await show(page, 'schedules')
    const controls: number = await page.evaluate(
      `[...document.querySelectorAll('a[href], button:not(:disabled), input, select, summary')].filter((one) => one.checkVisibility()).length`,
    )
    const seen = new Set<number>()
    for (let n = 0; n < controls; n++) {
      await page.keyboard.press('Tab')
      const [place, isShown] = await page.evaluate<[number, boolean]>(`(() => {
        const one = document.activeElement
        return [[...document.querySelectorAll('*')].indexOf(one), getComputedStyle(one).outlineStyle !== 'none']
      })()`)
      expect(isShown).toBe(true)
      seen.add(place)
    }
    expect(seen.size).toBe(controls)
  })

  test('nothing moves where motion is not wanted', async () => {
    const moving = (page: Page): Promise<number> =>
      page.evaluate(`document.getAnimations().filter((one) => one.playState === 'running').length`)
    const page = await stage.open('#/tasks?status=running', { reducedMotion: 'reduce' })
    await page.locator('[data-task]').first().waitFor()
    expect(await moving(page)).toBe(0)
    await page.emulateMedia({ reducedMotion: 'no-preference' })
    await expect.poll(() => moving(page)).toBeGreaterThan(0)
  })
})
