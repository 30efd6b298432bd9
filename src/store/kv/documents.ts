/** Small named texts with a version. A document gets a deletion mark before it is deleted. */

import { HoldfastError } from '../../core/errors.ts'
import { FLOW, PAUSE, QUEUE, SCHEDULE } from '../../core/storage/document-names.ts'
import type { Instant } from '../../core/task.ts'
import type { Document, Documents } from '../store.ts'
import type { Mark } from './access/key-value.ts'
import type { RetryingKeyValue } from './access/retrying-key-value.ts'
import type { DocumentChanges } from './hints/hints.ts'
import { corrupt, newNonce } from './records/bodies.ts'
import { DELETE_WITHIN, DELETION_OVER, readPastDeletion } from './records/deletion-mark.ts'
import { DOCUMENTS, documentKey, documentName } from './records/names.ts'

interface StoredDocument extends Document {
  readonly deletingAt: Instant | null
  readonly mark: Mark
}

const MOST_OWN = 1_000
/** Every worker lists these every few seconds or every minute, so changes to them are announced. */
const WATCHED: readonly string[] = [PAUSE, FLOW, QUEUE, SCHEDULE]
const TRIES = 20

export class KvDocuments implements Documents {
  readonly #kv: RetryingKeyValue
  readonly #now: () => Promise<Instant>

  /** The last write of this process by name, so that the next write need not read first. */
  readonly #own = new Map<string, { readonly version: number; readonly mark: Mark }>()
  /** Lists of watched documents by prefix, each with the snapshot from before it was read. */
  readonly #lists = new Map<string, { readonly documents: readonly Document[]; readonly snapshot: string | null }>()
  readonly #changes: DocumentChanges | null

  /** `changes` is null where changes are not announced. Then every list is read. */
  constructor(kv: RetryingKeyValue, now: () => Promise<Instant>, changes: DocumentChanges | null) {
    this.#kv = kv
    this.#now = now
    this.#changes = changes
  }

  async get(name: string): Promise<Document | null> {
    return asDocument(await this.#read(name))
  }

  async put(name: string, value: string, version: number): Promise<number | null> {
    const written = version === 0 ? await this.#create(name, value) : await this.#update(name, value, version)
    if (written !== null) this.#changed(name)
    return written
  }

  async #create(name: string, value: string): Promise<number | null> {
    const text = encode({ name, value, version: 1, deletingAt: null })
    const mark = await this.#kv.create(documentKey(name), text)
    if (mark === null) return this.#createOverDeleted(name, value)
    this.#remember(name, 1, mark)
    return 1
  }

  async #update(name: string, value: string, version: number): Promise<number | null> {
    const own = this.#own.get(name)
    const text = encode({ name, value, version: version + 1, deletingAt: null })
    if (own?.version === version) {
      const mark = await this.#kv.update(documentKey(name), text, own.mark)
      if (mark !== null) return this.#remember(name, version + 1, mark)
    }
    const stored = await this.#read(name)
    if (stored === null || stored.deletingAt !== null || stored.version !== version) return null
    const mark = await this.#kv.update(documentKey(name), text, stored.mark)
    return mark === null ? null : this.#remember(name, version + 1, mark)
  }

  #remember(name: string, version: number, mark: Mark): number {
    this.#own.delete(name)
    this.#own.set(name, { version, mark })
    if (this.#own.size > MOST_OWN) this.#own.delete(this.#own.keys().next().value!)
    return version
  }

  #changed(name: string): void {
    if (this.#changes === null || !WATCHED.some((prefix) => name.startsWith(prefix))) return
    this.#lists.clear()
    this.#changes.announce()
  }

  /** The key exists: with a document, or with one that is being deleted. */
  async #createOverDeleted(name: string, value: string): Promise<number | null> {
    for (let tries = 0; tries < TRIES; tries++) {
      const stored = await readPastDeletion(() => this.#read(name), this.#now)
      if (stored !== null && stored.deletingAt === null) return null
      const version = (stored?.version ?? 0) + 1
      const text = encode({ name, value, version, deletingAt: null })
      if ((await this.#kv.put(documentKey(name), text, stored?.mark ?? null)) !== null) return version
    }
    throw new HoldfastError('STORE_CONFLICT', `document ${name} changed during each of ${TRIES} tries`)
  }

  async list(prefix: string): Promise<readonly Document[]> {
    if (this.#changes === null || !WATCHED.includes(prefix)) return this.#list(prefix)
    // Taken before the list, so that a change during the list makes the snapshot differ.
    const snapshot = this.#changes.snapshot()
    const known = this.#lists.get(prefix)
    if (known !== undefined && snapshot !== null && known.snapshot === snapshot) return known.documents
    const documents = await this.#list(prefix)
    this.#lists.set(prefix, { documents, snapshot })
    return documents
  }

  async #list(prefix: string): Promise<Document[]> {
    const documents: Document[] = []
    for await (const keys of this.#kv.pages(documentKey(prefix)))
      for (const stored of await Promise.all(keys.map((key) => this.#read(documentName(key))))) {
        const document = asDocument(stored)
        if (document !== null) documents.push(document)
        else if (stored !== null) await this.#finishDelete(stored)
      }
    return documents.sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  async delete(name: string, version: number): Promise<boolean> {
    const stored = await this.#read(name)
    if (stored === null || stored.deletingAt !== null) return true
    if (stored.version !== version) return false
    if (await this.#markAndDelete(stored)) {
      this.#changed(name)
      return true
    }
    const found = await this.get(name)
    return found === null
  }

  async #markAndDelete(stored: StoredDocument): Promise<boolean> {
    const begun = performance.now()
    const text = encode({ ...stored, value: '', deletingAt: await this.#now() })
    const key = documentKey(stored.name)
    if ((await this.#kv.update(key, text, stored.mark)) === null) return false
    if (performance.now() - begun < DELETE_WITHIN) await this.#kv.delete([key])
    return true
  }

  /** The process that set the deletion mark did not delete the document. */
  async #finishDelete(stored: StoredDocument): Promise<void> {
    if ((await this.#now()) - stored.deletingAt! > DELETION_OVER) await this.#markAndDelete(stored)
  }

  async #read(name: string): Promise<StoredDocument | null> {
    const key = documentKey(name)
    const entry = await this.#kv.get(key)
    if (entry === null) return null
    try {
      return { ...(JSON.parse(entry.value) as StoredDocument), mark: entry.mark }
    } catch {
      throw corrupt(`${DOCUMENTS}${name}`, 'is not what Holdfast writes')
    }
  }
}

const encode = ({ name, value, version, deletingAt }: Omit<StoredDocument, 'mark'>): string =>
  JSON.stringify({ nonce: newNonce(), name, value, version, deletingAt })

const asDocument = (stored: StoredDocument | null): Document | null =>
  stored === null || stored.deletingAt !== null
    ? null
    : { name: stored.name, value: stored.value, version: stored.version }
