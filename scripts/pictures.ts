/** Takes the pictures of the README, or with --all every page at three widths in both themes, to be looked at. The store is that of test/dashboard/day.ts. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type BrowserContext, chromium, type Page } from 'playwright-core'
import { build } from 'vite'
import { createHttpHandler, EVERYTHING, everybody, listen, Tokens } from '../src/http/index.ts'
import { type Pages, readPages } from '../src/http/pages.ts'
import { connect, silentLogger } from '../src/index.ts'
import { findChromium } from '../test/dashboard/chromium.ts'
import { type Day, liveThroughADay } from '../test/dashboard/day.ts'
import { closeScene, dialogsOf, EMPTY, showPage } from '../test/dashboard/scenes.ts'

const HELP = `node scripts/pictures.ts [options]

  --all FOLDER   every page and dialog at 1440, 1024 and 390 pixels, light and dark, into this folder
  --only TEXT    of these, only pages whose name contains it
  --minutes N    how long the shop has been open (default 75)
`

const ROOT = join(import.meta.dirname, '..')
const WIDTHS = [1_440, 1_024, 390] as const
const SCHEMES = ['light', 'dark'] as const

const { values } = parseArgs({
  options: {
    all: { type: 'string' },
    only: { type: 'string', default: '' },
    minutes: { type: 'string', default: '75' },
    help: { type: 'boolean' },
  },
})

const show = async (page: Page, address: string, hash: string): Promise<void> => {
  await showPage(page, address, hash)
  // Without data there is no chart.
  await page.locator('.charts.waiting').waitFor({ state: 'detached' })
  await page.waitForLoadState('networkidle', { timeout: 500 }).catch(() => {})
}

const pagesOf = ({ story, parked, stuck }: Day): readonly (readonly [name: string, hash: string])[] => [
  ['overview', ''],
  ['queues', 'queues'],
  ['queue', 'queues/sync'],
  ['queue-paused', 'queues/media'],
  ['type', 'types/deliver_webhook'],
  ['tasks', 'tasks'],
  ['tasks-running', 'tasks?status=running'],
  ['tasks-dead', 'tasks?status=dead'],
  ['tasks-none', 'tasks?queue=nowhere'],
  ['task', `tasks/${story}`],
  ['task-parked', `tasks/${parked}`],
  ['task-stuck', `tasks/${stuck}`],
  ['dead', 'dead'],
  ['schedules', 'schedules'],
  ['schedule', 'schedules/feed-globex'],
  ['workers', 'workers'],
  ['jobs', 'jobs'],
  ['sessions', 'sessions'],
]

const everyPage = async (context: BrowserContext, address: string, day: Day, folder: string): Promise<void> => {
  mkdirSync(folder, { recursive: true })
  const page = await context.newPage()
  for (const scheme of SCHEMES) {
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' })
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: width === 390 ? 844 : 900 })
      for (const [name, hash] of pagesOf(day)) {
        if (!name.includes(values.only)) continue
        await show(page, address, hash)
        await page.screenshot({ path: join(folder, `${name}-${width}-${scheme}.png`), fullPage: true })
      }
      await dialogs(page, address, day, async (name) => {
        await page.screenshot({ path: join(folder, `${name}-${width}-${scheme}.png`) })
      })
    }
  }
}

const dialogs = async (page: Page, address: string, day: Day, take: (name: string) => Promise<void>): Promise<void> => {
  for (const scene of dialogsOf(day)) {
    if (!`dialog-${scene.name}`.includes(values.only)) continue
    await show(page, address, scene.hash)
    await scene.open(page)
    await take(`dialog-${scene.name}`)
    await closeScene(page, scene)
  }
}

/** The door, a store in which nothing was done, and a server that is gone. */
const bare = async (context: BrowserContext, pages: Pages, folder: string): Promise<void> => {
  const client = await connect('memory:', { logger: silentLogger })
  const token = 'the-token-of-ann-0123456789'
  const tokens = new Tokens([{ token, rights: EVERYTHING, name: 'ann' }])
  const server = await listen(createHttpHandler(client, { authorize: tokens.authorize, tokens, pages }), {
    host: '127.0.0.1',
    port: 0,
  })
  const address = `http://127.0.0.1:${server.port}/`
  const page = await context.newPage()
  for (const scheme of SCHEMES) {
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' })
    for (const width of WIDTHS) {
      const take = async (name: string): Promise<void> => {
        if (!name.includes(values.only)) return
        await page.screenshot({ path: join(folder, `${name}-${width}-${scheme}.png`) })
      }
      await page.setViewportSize({ width, height: width === 390 ? 844 : 900 })
      await context.clearCookies()
      await page.goto(address)
      await page.getByLabel('Token').waitFor()
      await take('login')
      await page.goto(`${address}login?token=a-link-of-an-earlier-start`)
      await page.getByRole('alert').waitFor()
      await take('login-stale')
      await page.goto(`${address}login?token=${token}`)
      for (const hash of EMPTY) {
        await show(page, address, hash)
        await take(`empty-${hash.replace('/', '-').slice(0, 16)}`)
      }
      await show(page, address, 'queues')
      await context.setOffline(true)
      await page.locator('.lost').waitFor()
      await take('lost')
      await context.setOffline(false)
    }
  }
  await page.close()
  await server.close()
  await client.close()
}

/** The same picture in half the bytes. */
const webpOf = async (context: BrowserContext, png: Uint8Array): Promise<Uint8Array> => {
  const page = await context.newPage()
  const address: string = await page.evaluate(`(async () => {
    const image = await createImageBitmap(await (await fetch('data:image/png;base64,${Buffer.from(png).toString('base64')}')).blob())
    const canvas = document.createElement('canvas')
    canvas.width = image.width
    canvas.height = image.height
    canvas.getContext('2d').drawImage(image, 0, 0)
    return canvas.toDataURL('image/webp', 0.85)
  })()`)
  await page.close()
  return Buffer.from(address.slice(address.indexOf(',') + 1), 'base64')
}

const forReadme = async (context: BrowserContext, address: string, day: Day): Promise<void> => {
  const page = await context.newPage()
  const take = async (name: string): Promise<void> =>
    writeFileSync(join(ROOT, 'docs/images', `${name}.webp`), await webpOf(context, await page.screenshot()))
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
  await page.setViewportSize({ width: 1_280, height: 800 })
  await show(page, address, '')
  await page.getByRole('button', { name: '1 hour' }).click()
  await page.waitForLoadState('networkidle').catch(() => {})
  // Until the list of what just happened is full.
  await page.locator('[data-panel=recent] li').nth(9).waitFor({ timeout: 60_000 })
  await take('dashboard-light')
  await page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' })
  await show(page, address, `tasks/${day.story}`)
  await page.locator('.why').waitFor()
  await take('dashboard-dark')
}

const main = async (): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-pictures-'))
  process.env['NODE_ENV'] = 'production'
  await build({ configFile: join(ROOT, 'dashboard/vite.config.ts'), logLevel: 'warn', build: { outDir: folder } })
  const day = await liveThroughADay({ minutes: Number(values.minutes) })
  const pages = readPages(folder)!
  const handler = createHttpHandler(day.client, { authorize: everybody, charts: day.charts, pages })
  const server = await listen(handler, { host: '127.0.0.1', port: 0 })
  const address = `http://127.0.0.1:${server.port}/`
  const browser = await chromium.launch(findChromium())
  try {
    const context = await browser.newContext({ locale: 'en-GB', timezoneId: 'Europe/Berlin' })
    if (values.all === undefined) await forReadme(context, address, day)
    else {
      await replayBehindCanary(address)
      await everyPage(context, address, day, values.all)
      await bare(await browser.newContext({ locale: 'en-GB', timezoneId: 'Europe/Berlin' }), pages, values.all)
    }
  } finally {
    await browser.close()
    await server.close()
    await day.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A background job that goes on for as long as pictures are taken, as a person would begin it. */
const replayBehindCanary = async (address: string): Promise<void> => {
  const post = async (path: string, body: object): Promise<{ confirm: string }> => {
    const response = await fetch(`${address}api/v1${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    if (!response.ok) throw new Error(`${path} answered ${response.status}`)
    return (await response.json()) as { confirm: string }
  }
  const query = { type: 'deliver_webhook' }
  const { confirm } = await post('/dead-letters/replay/preview', { query })
  await post('/dead-letters/replay', { query, confirm, canary: 2 })
}

if (values.help) process.stdout.write(HELP)
else await main()
