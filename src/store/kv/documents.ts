/** Small named texts with a version. One that is deleted is sealed first, so that nobody writes what is being taken away. */
import { HoldfastError } from '../../core/errors.ts'
import type { Instant } from '../../core/task.ts'
import type { Document, Documents } from '../store.ts'
import { corrupt, newNonce } from './bodies.ts'
import type { Bulletins, Edition } from './bulletins.ts'
import type { Mark } from './key-value.ts'
import { DOCUMENTS, documentKey, documentName } from './names.ts'
import type { SteadyKeyValue } from './steady.ts'
import { pastSeal, SEAL_LIFE, SEAL_OVER } from './tasks.ts'

interface Kept extends Document {
  readonly sealedAt: Instant | null
  readonly mark: Mark
}

const PAGE = 1_000
const MOST_OWN = 1_000
/** Names by which the runtime keeps what every worker asks for every few seconds, and the queues that there are. */
const [PAUSE, SCHEDULE, QUEUE] = ['pause/', 'schedule/', 'queue/'] as const
const WATCHED: readonly string[] = [PAUSE, SCHEDULE]
const TRIES = 20

export class KvDocuments implements Documents {
  readonly #kv: SteadyKeyValue
  readonly #now: () => Promise<Instant>

  /** By name: the last write of this process, so that the next need not read it first. */
  readonly #own = new Map<string, { readonly version: number; readonly mark: Mark }>()
  /** Where looks bring news: what was listed, by prefix, and when. */
  readonly #lists = new Map<string, { readonly documents: readonly Document[]; readonly edition: Edition }>()
  readonly #bulletins: Bulletins | null

  constructor(kv: SteadyKeyValue, now: () => Promise<Instant>, bulletins: Bulletins | null) {
    this.#kv = kv
    this.#now = now
    this.#bulletins = bulletins
  }

  async get(name: string): Promise<Document | null> {
    return asDocument(await this.#read(name))
  }

  async put(name: string, value: string, version: number): Promise<number | null> {
    const written = version === 0 ? await this.#create(name, value) : await this.#update(name, value, version)
    if (written !== null) await this.#changed(name)
    return written
  }

  async #create(name: string, value: string): Promise<number | null> {
    const text = encode({ name, value, version: 1, sealedAt: null })
    const mark = await this.#kv.create(documentKey(name), text)
    if (mark === null) return this.#putOverSealed(name, value)
    this.#remember(name, 1, mark)
    return 1
  }

  async #update(name: string, value: string, version: number): Promise<number | null> {
    const own = this.#own.get(name)
    const text = encode({ name, value, version: version + 1, sealedAt: null })
    if (own?.version === version) {
      const mark = await this.#kv.update(documentKey(name), text, own.mark)
      if (mark !== null) return this.#remember(name, version + 1, mark)
    }
    const kept = await this.#read(name)
    if (kept === null || kept.sealedAt !== null || kept.version !== version) return null
    const mark = await this.#kv.update(documentKey(name), text, kept.mark)
    return mark === null ? null : this.#remember(name, version + 1, mark)
  }

  #remember(name: string, version: number, mark: Mark): number {
    this.#own.delete(name)
    this.#own.set(name, { version, mark })
    if (this.#own.size > MOST_OWN) this.#own.delete(this.#own.keys().next().value!)
    return version
  }

  /** Those that others read again and again are announced to whoever looks at a queue. */
  async #changed(name: string): Promise<void> {
    if (this.#bulletins === null || !WATCHED.some((prefix) => name.startsWith(prefix))) return
    this.#lists.clear()
    const known = await this.#kv.list(documentKey(QUEUE), { limit: PAGE })
    const queues = new Set(known.map((key) => documentName(key).slice(QUEUE.length)))
    if (name.startsWith(PAUSE)) queues.add(name.slice(PAUSE.length))
    await this.#bulletins.announce([...queues])
  }

  /** Something is there: a document, or what somebody is taking away. */
  async #putOverSealed(name: string, value: string): Promise<number | null> {
    for (let tries = 0; tries < TRIES; tries++) {
      const kept = await pastSeal(() => this.#read(name), this.#now)
      if (kept !== null && kept.sealedAt === null) return null
      const version = (kept?.version ?? 0) + 1
      const text = encode({ name, value, version, sealedAt: null })
      const key = documentKey(name)
      const mark = kept === null ? await this.#kv.create(key, text) : await this.#kv.update(key, text, kept.mark)
      if (mark !== null) return version
    }
    throw new HoldfastError('STORE_CONFLICT', `document ${name} changed under every one of ${TRIES} tries`)
  }

  async list(prefix: string): Promise<readonly Document[]> {
    if (this.#bulletins === null || !WATCHED.includes(prefix)) return this.#list(prefix)
    const known = this.#lists.get(prefix)
    if (known !== undefined && this.#bulletins.holds(known.edition)) return known.documents
    const edition = this.#bulletins.edition()
    const documents = await this.#list(prefix)
    this.#lists.set(prefix, { documents, edition })
    return documents
  }

  async #list(prefix: string): Promise<Document[]> {
    const documents: Document[] = []
    for (let after: string | undefined; ; ) {
      const range = after === undefined ? { limit: PAGE } : { limit: PAGE, after }
      const keys = await this.#kv.list(documentKey(prefix), range)
      const read = await Promise.all(keys.map((key) => this.#read(documentName(key))))
      for (const kept of read) {
        const document = asDocument(kept)
        if (document !== null) documents.push(document)
        else if (kept !== null) await this.#finishDelete(kept)
      }
      if (keys.length < PAGE) break
      after = keys.at(-1)!
    }
    return documents.sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  async delete(name: string, version: number): Promise<boolean> {
    const kept = await this.#read(name)
    if (kept === null || kept.sealedAt !== null) return true
    if (kept.version !== version) return false
    if (await this.#sealAndDelete(kept)) {
      await this.#changed(name)
      return true
    }
    const found = await this.get(name)
    return found === null
  }

  /** Only whoever sealed it may take it away, and only soon. */
  async #sealAndDelete(kept: Kept): Promise<boolean> {
    const begun = performance.now()
    const text = encode({ ...kept, value: '', sealedAt: await this.#now() })
    const key = documentKey(kept.name)
    if ((await this.#kv.update(key, text, kept.mark)) === null) return false
    if (performance.now() - begun < SEAL_LIFE) await this.#kv.delete([key])
    return true
  }

  /** Whoever sealed this did not come to take it away. */
  async #finishDelete(kept: Kept): Promise<void> {
    if ((await this.#now()) - kept.sealedAt! > SEAL_OVER) await this.#sealAndDelete(kept)
  }

  async #read(name: string): Promise<Kept | null> {
    const key = documentKey(name)
    const entry = await this.#kv.get(key)
    if (entry === null) return null
    try {
      return { ...(JSON.parse(entry.value) as Kept), mark: entry.mark }
    } catch {
      throw corrupt(`${DOCUMENTS}${name}`, 'is not what Holdfast writes')
    }
  }
}

const encode = ({ name, value, version, sealedAt }: Omit<Kept, 'mark'>): string =>
  JSON.stringify({ nonce: newNonce(), name, value, version, sealedAt })

const asDocument = (kept: Kept | null): Document | null =>
  kept === null || kept.sealedAt !== null ? null : { name: kept.name, value: kept.value, version: kept.version }
