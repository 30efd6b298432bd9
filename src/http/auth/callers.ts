/** Lets callers act under their own names, and limits some callers to some queues. */
import type { Client } from '../../index.ts'
import { HttpError } from '../wire/errors.ts'
import type { Access } from './access.ts'

/** How many clients are kept. A proxy may have many users, and a client under another name is cheap to make again. */
const MOST = 200

export class Callers {
  readonly #client: Client
  readonly #byName = new Map<string, Client>()

  constructor(client: Client) {
    this.#client = client
  }

  /** The client whose moves have the caller's name. */
  clientOf({ name }: Access): Client {
    if (name === undefined) return this.#client
    const known = this.#byName.get(name)
    if (known !== undefined) return known
    const [oldest] = this.#byName.keys()
    if (oldest !== undefined && this.#byName.size >= MOST) this.#byName.delete(oldest)
    const client = this.#client.as(name)
    this.#byName.set(name, client)
    return client
  }
}

/** Throws NOT_ALLOWED if the caller may work only in other queues. */
export const mustServe = ({ queues }: Access, queue = 'default'): void => {
  if (queues !== undefined && !queues.includes(queue))
    throw new HttpError('NOT_ALLOWED', `this token is for the queues ${queues.join(', ')}, not for '${queue}'`)
}
