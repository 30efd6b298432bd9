/** What a person does with the dashboard: submit, watch, cancel, replay, pause. Each is asked first, and the store knows of each. */
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { PermanentError, RescheduleError } from '../../src/index.ts'
import { closeBrowser, gate, hasBrowser, openStage, type Stage } from './stage.ts'

describe.skipIf(!hasBrowser)('through the dashboard', () => {
  let stage: Stage
  beforeEach(async () => {
    stage = await openStage()
  })
  afterEach(() => stage.close())
  afterAll(closeBrowser)

  test('a task is submitted, seen to run, to report progress and to end, without a reload', async () => {
    const finish = gate()
    const worker = stage.client.worker({ id: 'worker-7' }).handle('greet', async (input, ctx) => {
      await ctx.progress(0.5)
      await finish.opened
      return { hello: (input as { name: string }).name }
    })
    const page = await stage.open('#/queues')
    await page.getByRole('button', { name: 'Submit' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Type').fill('greet')
    await dialog.getByLabel('Input').fill('{ "name": ')
    await dialog.getByRole('button', { name: 'Submit' }).click()
    await dialog.getByText('The input is not JSON').waitFor()
    await dialog.getByLabel('Input').fill('{ "name": "Ada" }')
    await dialog.getByText('More options').click()
    await dialog.getByLabel('Tags').fill('team=infra, env=prod')
    await dialog.getByRole('button', { name: 'Submit' }).click()
    await page.waitForURL(/#\/tasks\/[0-9a-f-]{36}$/)
    await page.locator('h1 .pill[data-view=ready]').waitFor()
    await page.locator('.why').waitFor()

    const running = worker.run()
    await page.locator('h1 .pill[data-view=running]').waitFor()
    await page.locator('[data-panel=progress] progress').waitFor()
    await page.locator('.strip [data-span=ongoing]').waitFor()
    finish.open()
    await page.locator('h1 .pill[data-view=completed]').waitFor()
    await page.locator('[data-panel=output]').getByText('"Ada"').waitFor()
    expect(await page.locator('.moves > li').allTextContents()).toEqual([
      expect.stringMatching(/^Submittedby/),
      expect.stringMatching(/^Claimedattempt 1by worker-7/),
      expect.stringMatching(/^Completedby worker-7/),
    ])
    const [task] = (await stage.client.list()).tasks
    expect(task).toMatchObject({ type: 'greet', tags: { team: 'infra', env: 'prod' }, status: 'completed' })
    await worker.stop()
    await running
    expect(stage.complaints).toEqual([])
  })

  test('the overview shows counts and changes live', async () => {
    const page = await stage.open()
    await page.locator('.connection[data-state=live]').waitFor()
    await page.getByText('Quiet', { exact: true }).waitFor()
    const { id } = await stage.client.submit('greet', {})
    await page.locator(`[data-panel=recent] a[href="#/tasks/${id}"]`).waitFor()
    await expect.poll(() => page.locator('[data-count=ready]').textContent()).toBe('1')
    await expect.poll(() => page.locator('.chart canvas').count()).toBe(3)
    // Something other than the ground was drawn on each.
    await expect
      .poll(() =>
        page.evaluate(`[...document.querySelectorAll('.chart canvas')].every((canvas) =>
          new Set(new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size > 10)`),
      )
      .toBe(true)
    // One crosshair for all, with its time; then another range.
    await page
      .locator('.plot')
      .first()
      .hover({ position: { x: 150, y: 60 } })
    await expect.poll(() => page.locator('.crosshair').textContent()).toMatch(/^\d\d:\d\d:\d\d$/)
    await page.getByRole('button', { name: '24 hours' }).click()
    await page.getByRole('button', { name: '24 hours', pressed: true }).waitFor()
    expect(stage.complaints).toEqual([])
  })

  test('the timeline shows every attempt, reschedule and who did it', async () => {
    let runs = 0
    const worker = stage.client.worker({ id: 'worker-7' }).handle('sync', () => {
      runs++
      if (runs === 1) throw new Error('upstream 503')
      if (runs === 2) throw new RescheduleError('1ms')
      throw new PermanentError('gone')
    })
    const { id } = await stage.client.submit('sync', {}, { retryPolicy: { base: '1ms', jitter: 'none' } })
    const running = worker.run()
    await expect.poll(async () => (await stage.client.get(id)).status).toBe('failed')
    await worker.stop()
    await running
    const page = await stage.open(`#/tasks/${id}`)
    const moves = page.locator('.moves > li')
    await moves.first().waitFor()
    const told = (await moves.allTextContents()).map((text) => text.replace(/\d+ \w+, \d.*$|\d\d:\d\d:\d\d.*$/, ''))
    expect(told).toEqual([
      'Submittedby tester',
      'Claimedattempt 1by worker-7',
      expect.stringMatching(/^Failed, will retryby worker-7.*retry 1upstream 503$/),
      'Claimedattempt 2by worker-7',
      expect.stringMatching(/^Rescheduledby worker-7.*reschedule 1$/),
      'Claimedattempt 3by worker-7',
      'Failed permanentlyby worker-7gone',
    ])
    expect(await page.locator('.strip [data-span=failed]').count()).toBe(2)
    expect(await page.locator('.strip [data-span=rescheduled]').count()).toBe(1)
    await page.locator('[data-panel=error]').getByText('gone', { exact: false }).first().waitFor()
    await page.locator('.why').waitFor()
  })

  test('a task is cancelled only after the question was answered', async () => {
    const { id } = await stage.client.submit('greet', {}, { delay: '1h' })
    const page = await stage.open(`#/tasks/${id}`)
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Never mind' }).click()
    await page.locator('dialog').waitFor({ state: 'detached' })
    expect((await stage.client.get(id)).status).toBe('pending')
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('dialog').getByLabel('Reason').fill('a mistake')
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel the task' }).click()
    await page.locator('h1 .pill[data-view=cancelled]').waitFor()
    await page.getByText('reason: a mistake').waitFor()
    expect((await stage.client.get(id)).status).toBe('cancelled')
  })

  test('a running task is asked to stop, and stops', async () => {
    const worker = stage.client
      .worker()
      .handle(
        'wait',
        (_, { signal }) =>
          new Promise((_done, fail) => signal.addEventListener('abort', () => fail(signal.reason), { once: true })),
      )
    const { id } = await stage.client.submit('wait', {})
    const running = worker.run()
    const page = await stage.open(`#/tasks/${id}`)
    await page.locator('h1 .pill[data-view=running]').waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Ask it to stop' }).click()
    await page.locator('h1 .pill[data-view=cancelled]').waitFor()
    await worker.stop()
    await running
  })

  test('an error of the server is shown in the dialog, which stays open', async () => {
    const { id } = await stage.client.submit('greet', {}, { delay: '1h' })
    const page = await stage.open(`#/tasks/${id}`)
    await page.getByRole('button', { name: 'Expire' }).click()
    await stage.client.cancel(id)
    await page.getByRole('dialog').getByRole('button', { name: 'Expire' }).click()
    await page.getByRole('dialog').getByText('CANNOT_EXPIRE').waitFor()
  })

  test('dead letters are grouped, and a group is replayed behind a canary after a preview', async () => {
    let isMended = false
    const worker = stage.client.worker().handle('charge', (input) => {
      if (!isMended) throw new PermanentError(`card ${String(input)} was declined`)
    })
    await stage.client.submitMany([1, 2, 3].map((input) => ({ type: 'charge', input })))
    await worker.drain()
    const page = await stage.open('#/dead')
    const group = page.locator('[data-group]')
    await group.getByText('card # was declined').waitFor()
    expect(await group.count()).toBe(1)
    isMended = true
    await group.getByRole('button', { name: 'Replay' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('3 tasks, such as').waitFor()
    expect(await dialog.getByLabel('Canary').inputValue()).toBe('1')
    await dialog.getByRole('button', { name: 'Replay 3 tasks' }).click()
    const again = stage.client.worker().handle('charge', () => null)
    const running = again.run()
    await page.getByText('Replayed 3 of 3').waitFor()
    await page.getByText('No dead letters').waitFor()
    await expect.poll(async () => (await stage.client.count({ status: 'completed' })).count).toBe(3)
    await again.stop()
    await running
  })

  test('one dead letter is replayed from its own page, as a new task when asked', async () => {
    const worker = stage.client.worker().handle('charge', () => {
      throw new PermanentError('declined')
    })
    const { id } = await stage.client.submit('charge', 1)
    await worker.drain()
    const page = await stage.open(`#/tasks/${id}`)
    await page.getByRole('button', { name: 'Replay' }).click()
    await page.getByLabel('As a new task').check()
    await page.getByRole('dialog').getByRole('button', { name: 'Replay' }).click()
    await page.getByText('Replay of').waitFor()
    const { replayedAs } = await stage.client.get(id)
    expect(page.url()).toBe(`${stage.address}#/tasks/${replayedAs}`)
  })

  test('a queue is paused with a reason and resumed', async () => {
    await stage.client.submit('greet', {}, { queue: 'mail' })
    const page = await stage.open('#/queues')
    await page.getByRole('button', { name: 'Pause mail' }).click()
    await page.getByRole('dialog').getByLabel('Reason').fill('a new release')
    await page.getByRole('dialog').getByRole('button', { name: 'Pause the queue' }).click()
    await page.locator('[data-queue=mail]').getByText('paused').waitFor()
    expect(await stage.client.stats()).toMatchObject([{ queue: 'mail', paused: true }])
    await page.getByRole('button', { name: 'Resume mail' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Resume the queue' }).click()
    await page.locator('[data-queue=mail] .tag').waitFor({ state: 'detached' })
    expect(await stage.client.stats()).toMatchObject([{ queue: 'mail', paused: false }])
  })

  test('a slow answer is waited for, however much happens meanwhile; then the list is read once more', async () => {
    const held = gate()
    let readings = 0
    const page = await stage.open('#/queues')
    await page.locator('.connection[data-state=live]').waitFor()
    await page.route(/api\/v1\/tasks\?/, async (route) => {
      readings++
      await held.opened
      await route.continue()
    })
    await page.getByRole('navigation').getByRole('link', { name: 'Tasks' }).click()
    await expect.poll(() => readings).toBe(1)
    const worker = stage.client.worker().handle('charge', () => {
      throw new PermanentError('declined')
    })
    await stage.client.submitMany([1, 2, 3].map((input) => ({ type: 'charge', input })))
    await worker.drain()
    // The count in the rail comes after the moves were told.
    await page.locator('nav .count').getByText('3').waitFor()
    expect(readings).toBe(1)
    held.open()
    await expect.poll(() => page.locator('[data-task] [data-view=dead]').count()).toBe(3)
    expect(readings).toBeLessThanOrEqual(2)
  })

  test('a worker is listed while it lives, with what it has ended', async () => {
    const worker = stage.client
      .worker({ id: 'worker-7', queues: ['mail'], concurrency: 3 })
      .handle('greet', () => null)
      .handle('charge', () => {
        throw new PermanentError('declined')
      })
    await stage.client.submitMany([1, 2, 3, 4, 5].map((input) => ({ type: 'greet', input, queue: 'mail' })))
    await stage.client.submit('charge', 1, { queue: 'mail' })
    const running = worker.run()
    const page = await stage.open('#/workers')
    const row = page.locator('[data-worker=worker-7]')
    await row.getByRole('link', { name: 'mail' }).waitFor()
    await row.getByText('1 failed').waitFor()
    expect(await row.locator('[data-label="Per minute"]').textContent()).toBe('11 failed')
    await page.getByText('1 worker, 3 slots').waitFor()
    await row.getByRole('link', { name: 'charge' }).click()
    await page.getByRole('heading', { level: 1, name: 'charge' }).waitFor()
    await page.locator('.flow').getByText('1 died, 0 retried').waitFor()
    await page.locator('[data-panel=queues] [data-name=mail]').waitFor()
    await page.locator('[data-panel=workers]').getByRole('link', { name: 'worker-7' }).waitFor()
    await page.goto(`${stage.address}#/queues`)
    await page.locator('[data-panel=types] [data-name=charge]').getByRole('link', { name: 'charge' }).waitFor()
    await page.goto(`${stage.address}#/workers`)
    await worker.stop()
    await running
    await page.getByText('No live workers').waitFor()
  })

  test('JSON folds, unfolds and stays JSON, however deep and long it is; Copy works without a clipboard', async () => {
    const deep = { list: Array.from({ length: 250 }, (_, n) => n), a: { b: { c: { d: 'the deepest' } } } }
    const { id } = await stage.client.submit('greet', deep)
    const page = await stage.open(`#/tasks/${id}`)
    // On plain http off loopback there is no clipboard.
    await page.evaluate(`Object.defineProperty(navigator, 'clipboard', { value: undefined })`)
    await page.getByRole('button', { name: 'Copy the id' }).click()
    await page.getByText('Copied the id').waitFor()
    const json = page.locator('[data-panel=input] .json')
    await json.getByText('150 more').click()
    await expect.poll(async () => JSON.parse((await json.textContent())!)).toEqual(deep)
    await json.getByRole('button', { name: 'Fold a, 1 field' }).click()
    expect(await json.textContent()).not.toContain('the deepest')
    await json.getByRole('button', { name: 'Unfold a, 1 field' }).click()
    expect(await json.textContent()).toContain('the deepest')
  })
})
