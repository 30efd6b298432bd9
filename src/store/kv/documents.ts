/** Small named texts with a version. One that is deleted is sealed first, so that nobody writes what is being taken away. */
import { HoldfastError } from '../../core/errors.ts'
import type { Instant } from '../../core/task.ts'
import type { Document, Documents } from '../store.ts'
import { corrupt, newNonce } from './bodies.ts'
import type { Mark } from './key-value.ts'
import { DOCUMENTS, documentKey, documentName } from './names.ts'
import type { SteadyKeyValue } from './steady.ts'
import { pastSeal, SEAL_LIFE, SEAL_OVER } from './tasks.ts'

interface Kept extends Document {
  readonly sealedAt: Instant | null
  readonly mark: Mark
}

const PAGE = 1_000
const TRIES = 20

export class KvDocuments implements Documents {
  readonly #kv: SteadyKeyValue
  readonly #now: () => Promise<Instant>

  constructor(kv: SteadyKeyValue, now: () => Promise<Instant>) {
    this.#kv = kv
    this.#now = now
  }

  async get(name: string): Promise<Document | null> {
    return asDocument(await this.#read(name))
  }

  async put(name: string, value: string, version: number): Promise<number | null> {
    const kept = version === 0 ? null : await this.#read(name)
    if (version === 0) {
      const text = encode({ name, value, version: 1, sealedAt: null })
      if ((await this.#kv.create(documentKey(name), text)) !== null) return 1
      return this.#putOverSealed(name, value)
    }
    if (kept === null || kept.sealedAt !== null || kept.version !== version) return null
    const text = encode({ name, value, version: version + 1, sealedAt: null })
    const mark = await this.#kv.update(documentKey(name), text, kept.mark)
    return mark === null ? null : version + 1
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

  async list(prefix: string): Promise<Document[]> {
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
    if (await this.#sealAndDelete(kept)) return true
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
