/** What the pages of a failed test showed at last, so that a failure on another machine can be understood. */
import type { Page } from 'playwright-core'
import { onTestFailed, TestRunner } from 'vitest'

const LATEST = 15
const LONGEST_TEXT = 2_000
/** A page that hangs says nothing. */
const PATIENCE = 5_000

const TEXT = `[document.activeElement?.outerHTML.slice(0, 150), document.body.innerText].join('\\n\\n')`

const textOf = async (page: Page): Promise<string> => {
  if (page.isClosed()) return '(closed before the test ended)'
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<string>((done) => {
    timer = setTimeout(() => done('(the page does not respond)'), PATIENCE)
  })
  const text = page.evaluate<string>(TEXT).catch(String)
  return (await Promise.race([text, late]).finally(() => clearTimeout(timer))).slice(0, LONGEST_TEXT)
}

/** Takes down what the page shows, once: a later call gives the same again. */
export type Look = () => Promise<string>

/** From now on notes the requests of a page and where it goes. If the running test fails, that and its text follow the error message. */
export const watch = (page: Page): Look => {
  const steps: { text: string; readonly of?: object }[] = []
  const ended = (request: object, outcome: string): void => {
    const step = steps.find(({ of }) => of === request)
    if (step !== undefined) step.text = step.text.replace(/: .*$/, `: ${outcome}`)
  }
  page.on('request', (request) =>
    steps.push({ text: `${request.method()} ${request.url()}: no response`, of: request }),
  )
  page.on('response', (response) => ended(response.request(), String(response.status())))
  page.on('requestfailed', (request) => ended(request, request.failure()?.errorText ?? 'failed'))
  page.on('framenavigated', (frame) => steps.push({ text: `at ${frame.url()}` }))

  let seen: Promise<string> | null = null
  const look = async (): Promise<string> =>
    [
      `The page was at ${page.url()} and had done:`,
      ...steps.slice(-LATEST).map(({ text }) => `  ${text}`),
      'It showed (first the element with the focus):',
      (await textOf(page)).replace(/^/gm, '  '),
    ].join('\n')
  const once: Look = () => (seen ??= look())

  if (TestRunner.getCurrentTest() !== undefined)
    onTestFailed(async ({ task }) => {
      const error = task.result?.errors?.at(-1)
      if (error !== undefined) error.message += `\n\n${await once()}`
    })
  return once
}
