/** Checks the host that a request names and the page that sent it, against DNS rebinding and cross-site requests. */
import { HoldfastError } from '../../index.ts'
import { HttpError } from '../wire/errors.ts'

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'] as const

export class Origins {
  readonly #names: ReadonlySet<string>
  readonly #hosts: ReadonlySet<string> | null
  readonly #trustProxy: boolean

  /** `names` are accepted in addition to those of loopback; 'any' if the framework checks. `trustProxy` means that a proxy sets X-Forwarded-Proto. */
  constructor(names: readonly string[] | 'any', trustProxy = false) {
    if (names !== 'any' && !Array.isArray(names))
      throw new HoldfastError('INVALID_OPTION', `hosts must be a list of host names, or 'any'`, { field: 'hosts' })
    this.#trustProxy = trustProxy
    this.#names = new Set(names === 'any' ? [] : names.map((name) => name.toLowerCase()))
    this.#hosts = names === 'any' ? null : new Set([...LOOPBACK, ...this.#names])
  }

  /** Throws WRONG_HOST unless the host is a known name of this server. */
  checkHost(request: Request): void {
    if (this.#hosts !== null && !this.#hosts.has(nameOf(hostOf(request)))) throw new HttpError('WRONG_HOST')
  }

  /** Whether the browser speaks https, with this server or with the proxy before it. */
  isSecure(request: Request): boolean {
    if (new URL(request.url).protocol === 'https:') return true
    const forwarded = request.headers.get('x-forwarded-proto')?.split(',')[0]
    return this.#trustProxy && forwarded?.trim().toLowerCase() === 'https'
  }

  /** Throws CROSS_SITE if a page of another origin sent the request, or if the credential is a cookie and no header proves the origin. */
  checkSite(request: Request, isAmbient: boolean): void {
    const site = request.headers.get('sec-fetch-site')
    if (site !== null && site !== 'same-origin' && site !== 'none') throw new HttpError('CROSS_SITE')
    const origin = request.headers.get('origin')
    if (origin !== null && !this.#isOurs(origin, request)) throw new HttpError('CROSS_SITE')
    const isChange = request.method !== 'GET' && request.method !== 'HEAD'
    if (isChange && isAmbient && origin === null && site === null) throw new HttpError('CROSS_SITE')
  }

  #isOurs(origin: string, request: Request): boolean {
    if (!URL.canParse(origin)) return false
    const { host, hostname } = new URL(origin)
    // A proxy may have replaced Host with its own name: then the configured names decide.
    return host === hostOf(request) || this.#names.has(hostname)
  }
}

const hostOf = (request: Request): string => (request.headers.get('host') ?? new URL(request.url).host).toLowerCase()

const nameOf = (host: string): string => host.replace(/:\d{1,5}$/, '').replace(/\.$/, '')
