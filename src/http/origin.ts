/** Where a request comes from: the host that it names, and the page that sent it. Stops DNS rebinding and cross-site requests. */
import { DoorError } from './errors.ts'

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'] as const

export class Origins {
  readonly #names: ReadonlySet<string>
  readonly #hosts: ReadonlySet<string> | null

  /** `names` besides those of loopback; 'any': somebody else checks. */
  constructor(names: readonly string[] | 'any') {
    this.#names = new Set(names === 'any' ? [] : names.map((name) => name.toLowerCase()))
    this.#hosts = names === 'any' ? null : new Set([...LOOPBACK, ...this.#names])
  }

  /** WRONG_HOST unless it is a name that was given for this server. */
  checkHost(request: Request): void {
    if (this.#hosts !== null && !this.#hosts.has(nameOf(hostOf(request)))) throw new DoorError('WRONG_HOST')
  }

  /** CROSS_SITE when a page of another origin sent it, or when nothing says that none did though the credential is a cookie. */
  checkSite(request: Request, isAmbient: boolean): void {
    const site = request.headers.get('sec-fetch-site')
    if (site !== null && site !== 'same-origin' && site !== 'none') throw new DoorError('CROSS_SITE')
    const origin = request.headers.get('origin')
    if (origin !== null && !this.#isOurs(origin, request)) throw new DoorError('CROSS_SITE')
    const isChange = request.method !== 'GET' && request.method !== 'HEAD'
    if (isChange && isAmbient && origin === null && site === null) throw new DoorError('CROSS_SITE')
  }

  #isOurs(origin: string, request: Request): boolean {
    if (!URL.canParse(origin)) return false
    const { host, hostname } = new URL(origin)
    // A proxy may have put a name of its own into Host: then the names that were given decide.
    return host === hostOf(request) || this.#names.has(hostname)
  }
}

const hostOf = (request: Request): string => (request.headers.get('host') ?? new URL(request.url).host).toLowerCase()

const nameOf = (host: string): string => host.replace(/:\d{1,5}$/, '').replace(/\.$/, '')
