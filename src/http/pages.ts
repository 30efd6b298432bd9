/** The dashboard's files: read once, served plain or compressed. They contain no data, so they need no credential. */
import { readdirSync, readFileSync } from 'node:fs'
import { extname, join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync, gzipSync } from 'node:zlib'
import { answer } from './wire/answers.ts'
import { isKnown, tagOf, takesGzip } from './wire/fitted.ts'

interface Page {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly zipped: Uint8Array<ArrayBuffer>
  readonly type: string
  readonly etag: string
}

/** By path: /index.html, /assets/…. No other file can be requested. */
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

/** The package has its larger files in this form only. They are served under their names without it. */
const ZIPPED = '.gz'

/** null if the folder does not exist. */
export const readPages = (folder: string): Pages | null => {
  try {
    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    return new Map(
      files.map((entry) => {
        const file = join(entry.parentPath, entry.name)
        const read = new Uint8Array(readFileSync(file))
        const isZipped = file.endsWith(ZIPPED)
        const path = isZipped ? file.slice(0, -ZIPPED.length) : file
        const bytes = isZipped ? new Uint8Array(gunzipSync(read)) : read
        const zipped = isZipped ? read : new Uint8Array(gzipSync(read))
        const type = TYPES[extname(path)] ?? 'application/octet-stream'
        const name = path.slice(folder.length).split(sep).join('/').replace(/^\/*/, '/')
        return [name, { bytes, zipped, type, etag: tagOf(bytes) }]
      }),
    )
  } catch {
    return null
  }
}

/** The dashboard in the package; null if it was not built. */
export const dashboardPages = (): Pages | null => pagesAt('../dashboard') ?? pagesAt('../../dist/dashboard')

const pagesAt = (folder: string): Pages | null => {
  // A bundle in CommonJS does not know where it is.
  const beside = import.meta.url as string | undefined
  return beside === undefined ? null : readPages(fileURLToPath(new URL(folder, beside)))
}

/** Files with a content hash in their name never change. */
const FOREVER = 'public, max-age=31536000, immutable'

/** null if it is not a page. A path without a dot serves the dashboard, which keeps its location in the hash and uses relative URLs. */
export const servePage = (pages: Pages, request: Request, basePath: string): Response | null => {
  if (request.method !== 'GET' && request.method !== 'HEAD') return null
  const path = new URL(request.url).pathname.slice(basePath.length)
  if (path.startsWith('/api/')) return null
  const page = pages.get(path === '/' ? '/index.html' : path)
  if (page === undefined) {
    if (path.includes('.') || !pages.has('/index.html')) return null
    return answer(null, { status: 303, headers: { location: `${basePath}/${path === '' ? '' : `#${path}`}` } })
  }
  if (isKnown(request, page.etag)) return answer(null, { status: 304, headers: { etag: page.etag } })
  const takesZipped = takesGzip(request)
  return answer(request.method === 'HEAD' ? null : takesZipped ? page.zipped : page.bytes, {
    headers: {
      'content-type': page.type,
      etag: page.etag,
      vary: 'accept-encoding',
      ...(takesZipped && { 'content-encoding': 'gzip' }),
      'cache-control': path.startsWith('/assets/') ? FOREVER : 'no-cache',
    },
  })
}
