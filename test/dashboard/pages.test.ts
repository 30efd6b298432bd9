/** Every page opens, by click, by link and by key; what is empty or wrong is said. */
import type { Route } from 'playwright-core'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { EVERYTHING, Tokens, VIEWER } from '../../src/http/index.ts'
import { closeBrowser, hasBrowser, openStage, type Stage } from './stage.ts'

const PAGES = [
  ['', 'Overview'],
  ['queues', 'Queues'],
  ['tasks', 'Tasks'],
  ['dead', 'Dead letters'],
  ['schedules', 'Schedules'],
  ['workers', 'Workers'],
  ['jobs', 'Jobs'],
] as const

describe.skipIf(!hasBrowser)('the pages', () => {
  let stage: Stage
  beforeEach(async () => {
    stage = await openStage()
  })
  afterEach(() => stage.close())
  afterAll(closeBrowser)

  test('each opens from the navigation, with its name in the title, and without errors in the browser', async () => {
    const { id } = await stage.client.submit('greet', { name: 'Ada' })
    const page = await stage.open()
    for (const [hash, name] of PAGES) {
      await page.getByRole('navigation').getByRole('link', { name }).click()
      await page.getByRole('heading', { level: 1, name }).waitFor()
      await expect.poll(() => page.title()).toMatch(new RegExp(`^(\\(1\\) )?${name} · Holdfast$`))
      expect(page.url()).toBe(`${stage.address}#/${hash}`)
    }
    await page.goto(`${stage.address}#/tasks/${id}`)
    await page.getByRole('heading', { level: 1, name: 'greet' }).waitFor()
    await page.getByText('Submitted', { exact: true }).waitFor()
    await page.locator('.connection[data-state=live]').waitFor()
    expect(stage.complaints).toEqual([])
  })

  test('empty pages say how to fill them', async () => {
    const page = await stage.open('#/tasks')
    await page.getByText('No tasks yet').waitFor()
    for (const [hash, words] of [
      ['queues', 'No queues yet'],
      ['dead', 'No dead letters'],
      ['schedules', 'Nothing recurs'],
      ['workers', 'No live workers'],
      ['nowhere', 'There is no such page'],
    ] as const) {
      await page.goto(`${stage.address}#/${hash}`)
      await page.getByText(words).waitFor()
    }
  })

  test('a link keeps filters, and an unknown task is an error message', async () => {
    await stage.client.submit('greet', {}, { queue: 'mail', tags: { team: 'infra' } })
    await stage.client.submit('greet', {}, { queue: 'media' })
    const page = await stage.open('#/tasks?queue=mail&status=ready')
    await page.locator('[data-task]').waitFor()
    expect(await page.locator('[data-task]').count()).toBe(1)
    await page.goto(`${stage.address}#/tasks?tag=team%3Dinfra`)
    await page.getByText('tag team=infra').waitFor()
    await expect.poll(() => page.locator('[data-task]').count()).toBe(1)
    await page.goto(`${stage.address}#/tasks/00000000-0000-7000-8000-000000000000`)
    await page.getByRole('alert').getByText('TASK_NOT_FOUND').waitFor()
  })

  test('a typed path leads to the page that it names', async () => {
    const { id } = await stage.client.submit('greet', {})
    const page = await stage.open(`tasks/${id}`)
    await page.getByRole('heading', { level: 1, name: 'greet' }).waitFor()
    expect(page.url()).toBe(`${stage.address}#/tasks/${id}`)
  })

  test('it works under a path of another application, live and all', async () => {
    const mounted = await openStage({ basePath: '/queue' })
    try {
      await mounted.client.submit('greet', {}, { queue: 'mail' })
      const page = await mounted.open('queue')
      await page.getByRole('navigation').getByRole('link', { name: 'Queues' }).click()
      await page.locator('[data-queue=mail]').waitFor()
      await page.locator('.connection[data-state=live]').waitFor()
      expect(page.url()).toBe(`${mounted.address}queue/#/queues`)
      expect(mounted.complaints).toEqual([])
    } finally {
      await mounted.close()
    }
  })

  test('search opens a task by id and by key, and filters by tag', async () => {
    const { id } = await stage.client.submit('greet', {}, { idempotencyKey: 'order 7', tags: { team: 'infra' } })
    const page = await stage.open('#/tasks')
    for (const text of [id, 'order 7']) {
      await page.goto(`${stage.address}#/tasks`)
      await page.getByRole('searchbox').fill(text)
      await page.keyboard.press('Enter')
      await page.waitForURL(`${stage.address}#/tasks/${id}`)
    }
    await page.goto(`${stage.address}#/tasks`)
    await page.getByRole('searchbox').fill('no such key')
    await page.keyboard.press('Enter')
    await page.getByText('No task matches').waitFor()
    await page.getByRole('searchbox').fill('team=infra')
    await page.keyboard.press('Enter')
    await page.waitForURL(/tag=team%3Dinfra/)
  })

  test('a page of tasks ends, and the next one begins where it ended', async () => {
    await stage.client.submitMany(Array.from({ length: 120 }, (_, n) => ({ type: 'greet', input: n })))
    const page = await stage.open('#/tasks')
    const seen = new Set<string>()
    for (const expected of [50, 50, 20]) {
      await expect.poll(() => page.locator('[data-task]').count()).toBe(expected)
      await expect
        .poll(async () => seen.has((await page.locator('[data-task]').first().getAttribute('data-task'))!))
        .toBe(false)
      for (const row of await page.locator('[data-task]').all()) seen.add((await row.getAttribute('data-task'))!)
      if (expected === 50) await page.getByRole('link', { name: 'Older tasks' }).click()
    }
    expect(seen.size).toBe(120)
    expect(await page.getByRole('link', { name: 'Older tasks' }).count()).toBe(0)
  })

  test('keys go everywhere: pages, search, rows, the dialog, and out of it', async () => {
    const { id } = await stage.client.submit('greet', {})
    const page = await stage.open()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    for (const [key, name] of [
      ['q', 'Queues'],
      ['w', 'Workers'],
      ['t', 'Tasks'],
    ] as const) {
      await page.keyboard.press('g')
      await page.keyboard.press(key)
      await page.getByRole('heading', { level: 1, name }).waitFor()
    }
    await page.locator('[data-task]').waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.waitForURL(`${stage.address}#/tasks/${id}`)
    await page.keyboard.press('/')
    await expect.poll(() => page.evaluate('document.activeElement.type')).toBe('search')
    await page.goto(`${stage.address}#/queues`)
    await page.getByRole('heading', { level: 1, name: 'Queues' }).waitFor()
    await page.keyboard.press('n')
    await page.getByRole('dialog').waitFor()
    expect(await page.evaluate('document.activeElement.closest("dialog") !== null')).toBe(true)
    await page.keyboard.press('Escape')
    await page.locator('dialog').waitFor({ state: 'detached' })
    await page.keyboard.press('u')
    await page.getByRole('button', { name: 'Times: UTC' }).waitFor()
    await page.keyboard.press('?')
    await page.getByRole('dialog').getByText('Search tasks').waitFor()
  })

  test('dark and light follow the system until they are switched, and the switch is remembered', async () => {
    const page = await stage.open('#/queues', { colorScheme: 'dark' })
    const ground = (): Promise<string> => page.evaluate('getComputedStyle(document.documentElement).backgroundColor')
    await page.getByRole('heading', { level: 1 }).waitFor()
    const dark = await ground()
    await page.emulateMedia({ colorScheme: 'light' })
    const light = await ground()
    expect(light).not.toBe(dark)
    await page.keyboard.press('l')
    await page.keyboard.press('l')
    await expect.poll(ground).toBe(dark)
    await page.reload()
    await page.getByRole('heading', { level: 1 }).waitFor()
    expect(await ground()).toBe(dark)
  })

  test('a lost connection is reported, and the page continues when the server is back', async () => {
    const page = await stage.open('#/workers')
    await page.locator('.connection[data-state=live]').waitFor()
    await page.context().setOffline(true)
    await page.goto(`${stage.address}#/schedules`)
    await page.getByRole('alert').getByText('The server does not answer').waitFor()
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('alert').getByText('The server does not answer').waitFor()
    await page.context().setOffline(false)
    await page.getByText('Nothing recurs').waitFor()
  })

  test('a search whose answer fails, is cut off or is not from Holdfast is repeated until it succeeds', async () => {
    const page = await stage.open('#/tasks')
    const failures: readonly (readonly [text: string, fail: (route: Route) => Promise<void>])[] = [
      ['is away', (route) => route.abort('connectionreset')],
      ['is cut', (route) => route.fulfill({ status: 200, body: '{"tasks":[' })],
      ['is late', (route) => route.fulfill({ status: 503, body: '{}' })],
    ]
    for (const [text, fail] of failures) {
      let asked = 0
      await page.route(/\/tasks\?text=/, (route) => (asked++ === 0 ? fail(route) : route.fallback()))
      await page.goto(`${stage.address}#/tasks`)
      await page.getByText('No tasks yet').waitFor()
      await page.getByRole('searchbox').fill(text)
      await page.keyboard.press('Enter')
      await page.getByRole('alert').getByRole('button', { name: 'Try again' }).waitFor()
      await page.getByText('No task matches').waitFor()
      expect(asked).toBe(2)
      await page.unrouteAll()
    }
  })

  test('a key that is looked for in vain, because nobody answers, is searched as a text', async () => {
    const page = await stage.open('#/tasks')
    await page.getByText('No tasks yet').waitFor()
    await page.route(/by-key/, () => {})
    const looked = page.waitForRequest(/by-key/)
    await page.getByRole('searchbox').fill('order 7')
    await page.keyboard.press('Enter')
    await looked
    await page.getByText('No task matches').waitFor()
    await page.unrouteAll({ behavior: 'ignoreErrors' })
  })

  test('a server that accepts requests and answers none is a lost connection', async () => {
    const page = await stage.open('#/workers')
    const submit = page.getByRole('button', { name: 'Submit' })
    await page.locator('.connection[data-state=live]').waitFor()
    await page.route(/\/(changes|stats)$/, () => {})
    await page.reload()
    await page.getByText('The connection to the server is lost').waitFor()
    expect(await submit.isDisabled()).toBe(true)
    // The stream of that time stays without a word: the page opens another one.
    await page.unrouteAll({ behavior: 'ignoreErrors' })
    await page.locator('.connection[data-state=live]').waitFor()
    expect(await submit.isEnabled()).toBe(true)
  })
})

describe.skipIf(!hasBrowser)('who may do what', () => {
  afterAll(closeBrowser)
  const token = 'a-token-that-is-long-enough'
  const viewer = 'another-token-only-for-looking'

  test('a server with a token asks for it, refuses a wrong one, and opens for the right one', async () => {
    const tokens = new Tokens([{ token, rights: EVERYTHING }])
    const stage = await openStage({ authorize: tokens.authorize, tokens })
    try {
      const page = await stage.open('#/queues')
      await page.getByLabel('Token').fill('a-token-that-is-quite-wrong')
      await page.getByRole('button', { name: 'Open the dashboard' }).click()
      await page.getByRole('alert').getByText('NOT_AUTHENTICATED').waitFor()
      await page.getByLabel('Token').fill(token)
      await page.getByRole('button', { name: 'Open the dashboard' }).click()
      await page.getByRole('heading', { level: 1, name: 'Queues' }).waitFor()
      await page.locator('.connection[data-state=live]').waitFor()
    } finally {
      await stage.close()
    }
  })

  test('a viewer sees no payload, and every button is disabled', async () => {
    const tokens = new Tokens([{ token: viewer, rights: VIEWER }])
    const stage = await openStage({ authorize: tokens.authorize, tokens })
    try {
      const { id } = await stage.client.submit('greet', { secret: 'of Ada' })
      const page = await stage.open(`login?token=${viewer}`)
      await page.goto(`${stage.address}#/tasks/${id}`)
      await page.getByText('does not allow you to see payloads').waitFor()
      expect(await page.getByText('of Ada').count()).toBe(0)
      expect(await page.getByRole('button', { name: 'Cancel' }).isDisabled()).toBe(true)
      expect(await page.getByRole('button', { name: 'Submit' }).isDisabled()).toBe(true)
    } finally {
      await stage.close()
    }
  })

  test('a read-only server shows everything and offers nothing', async () => {
    const stage = await openStage({ readOnly: true })
    try {
      await stage.client.submit('greet', {})
      const page = await stage.open('#/queues')
      await page.getByText('read-only').waitFor()
      expect(await page.getByRole('button', { name: 'Pause default' }).isDisabled()).toBe(true)
    } finally {
      await stage.close()
    }
  })
})
