/** A memory store, the HTTP handler in front of it, and a browser. */
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { inject } from 'vitest'
import { createHttpHandler, everybody, type HttpHandlerOptions, listen } from '../../src/http/index.ts'
import { readPages } from '../../src/http/pages.ts'
import { type Client, connect, silentLogger } from '../../src/index.ts'
import { type Look, watch } from './seen.ts'

export const hasBrowser = inject('chromium') !== null

/** One browser for a file: launching costs more than anything else here. */
let browser: Promise<Browser> | null = null

export class Stage {
  readonly client: Client
  readonly address: string
  /** What browsers complained about: errors, refused inline scripts, failed requests. */
  readonly complaints: string[] = []
  readonly #close: () => Promise<void>
  readonly #pages: Page[] = []
  readonly #looks: Look[] = []

  constructor(client: Client, address: string, close: () => Promise<void>) {
    this.client = client
    this.address = address
    this.#close = close
  }

  /** A page of its own, with nothing remembered. */
  async open(hash = '#/', options: BrowserContextOptions = {}): Promise<Page> {
    browser ??= chromium.launch(inject('chromium')!)
    const context = await (await browser).newContext({
      locale: 'en-GB',
      timezoneId: 'UTC',
      viewport: { width: 1280, height: 860 },
      ...options,
    })
    context.setDefaultTimeout(20_000)
    const page = await context.newPage()
    this.#looks.push(watch(page))
    page.on('pageerror', ({ message }) => this.complaints.push(message))
    page.on('console', (message) => {
      if (message.type() === 'error') this.complaints.push(message.text())
    })
    await page.goto(this.address + hash)
    this.#pages.push(page)
    return page
  }

  /** A background job, as the dashboard begins one. */
  async begin(path: string, query: object, options: object): Promise<void> {
    const post = async (to: string, body: object): Promise<{ readonly confirm: string }> => {
      const response = await fetch(`${this.address}api/v1${to}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      if (!response.ok) throw new Error(`${to} answered ${response.status}`)
      return (await response.json()) as { readonly confirm: string }
    }
    const { confirm } = await post(`${path}/preview`, { query })
    await post(path, { query, confirm, ...options })
  }

  async close(): Promise<void> {
    // The test may have failed: by the time that this is known, its pages are closed.
    await Promise.all(this.#looks.map((look) => look()))
    await Promise.all(this.#pages.map((page) => page.context().close()))
    await this.#close()
  }
}

/** On a store of its own, or on a client that somebody else closes. */
export const openStage = async (options: Partial<HttpHandlerOptions> = {}, given?: Client): Promise<Stage> => {
  const client = given ?? (await connect('memory:', { name: 'tester', logger: silentLogger }))
  const handler = createHttpHandler(client, {
    authorize: everybody,
    pages: readPages(inject('dashboard'))!,
    ...options,
  })
  const server = await listen(handler, { host: '127.0.0.1', port: 0 })
  return new Stage(client, `http://127.0.0.1:${server.port}/`, async () => {
    await server.close()
    if (given === undefined) await client.close()
  })
}

export const closeBrowser = async (): Promise<void> => {
  await (await browser)?.close()
  browser = null
}

/** A promise, and what fulfils it. */
export const gate = (): { readonly opened: Promise<void>; readonly open: () => void } => {
  let open = (): void => {}
  const opened = new Promise<void>((done) => {
    open = done
  })
  return { opened, open }
}
