/** The dashboard's files: read once, served as they are or zipped. They hold no data, so they need no credential. */
import { readdirSync, readFileSync } from 'node:fs'
import { extname, join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { answer } from './answers.ts'

interface Page {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly zipped: Uint8Array<ArrayBuffer>
  readonly type: string
}

/** By path: /index.html, /assets/…. Nothing else can be asked for, whatever a path says. */
export type Pages = ReadonlyMap<string, Page>

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
  '.json': 'application/json',
  '.webmanifest': 'application/manifest+json',
}

/** null: there is no such folder. */
export const readPages = (folder: string): Pages | null => {
  try {
    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    return new Map(
      files.map((entry) => {
        const path = join(entry.parentPath, entry.name)
        const type = TYPES[extname(entry.name)] ?? 'application/octet-stream'
        const bytes = new Uint8Array(readFileSync(path))
        return [
          path.slice(folder.length).split(sep).join('/').replace(/^\/*/, '/'),
          { bytes, zipped: new Uint8Array(gzipSync(bytes)), type },
        ]
      }),
    )
  } catch {
    return null
  }
}

/** As it is built into the package; null where it is not. */
export const dashboardPages = (): Pages | null =>
  readPages(fileURLToPath(new URL('../dashboard', import.meta.url))) ??
  readPages(fileURLToPath(new URL('../../dist/dashboard', import.meta.url)))

/** Files whose name holds a hash of what is in them never change. */
const FOREVER = 'public, max-age=31536000, immutable'

/** null: not a page. A path without a dot is a place in the dashboard, which has them in the hash: its files are found by relative addresses. */
export const servePage = (pages: Pages, request: Request, basePath: string): Response | null => {
  if (request.method !== 'GET' && request.method !== 'HEAD') return null
  const path = new URL(request.url).pathname.slice(basePath.length)
  if (path.startsWith('/api/')) return null
  const page = pages.get(path === '/' ? '/index.html' : path)
  if (page === undefined) {
    if (path.includes('.') || !pages.has('/index.html')) return null
    return answer(null, { status: 303, headers: { location: `${basePath}/${path === '' ? '' : `#${path}`}` } })
  }
  const takesZipped = /\bgzip\b/.test(request.headers.get('accept-encoding') ?? '')
  return answer(request.method === 'HEAD' ? null : takesZipped ? page.zipped : page.bytes, {
    headers: {
      'content-type': page.type,
      vary: 'accept-encoding',
      ...(takesZipped && { 'content-encoding': 'gzip' }),
      ...(path.startsWith('/assets/') && { 'cache-control': FOREVER }),
    },
  })
}
