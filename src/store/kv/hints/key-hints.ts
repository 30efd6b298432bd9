/** Hints as keys under `ready/`, and the wake object that tells other processes of new ones. */
import type { Instant } from '../../../core/task.ts'
import type { ClaimRequest, WakeListener } from '../../store.ts'
import { WakeListeners } from '../../wake-listeners.ts'
import type { KeyValue } from '../access/key-value.ts'
import type { RetryingKeyValue } from '../access/retrying-key-value.ts'
import type { Timers } from '../access/timers.ts'
import type { Discards } from '../cleanup/discards.ts'
import { bundleOfKey, hintsIn } from '../records/bundle-names.ts'
import { type Hint, parseHint, queuePrefix, queuePrefixOf } from '../records/hint-names.ts'
import { READY, unescaped } from '../records/names.ts'
import { HintListing } from './hint-listing.ts'
import type { DocumentChanges, HintContext, Hints, Survey, SurveyTurns } from './hints.ts'
import { KnownBundles } from './known-bundles.ts'
import { Surveyor } from './surveyor.ts'
import type { WakeChanges } from './wake-body.ts'
import { WakeFollower } from './wake-follower.ts'
import { WakeObject } from './wake-object.ts'

/** A writer that died may not have announced its hint. A list finds it: this often with work, and without. */
const LIST_EVERY = 30_000
const LIST_EVERY_IDLE = 60_000
/** Watched documents are read again after this time: their writer may have died before it announced the change. */
const DOCUMENTS_LIFE = 400_000
/** A shorter delay is not worth a timer. */
const SHORTEST_DELAY = 20
const CLOSE_PATIENCE = 3_000

interface Parts {
  /** Without retries: the wake object has its own. */
  readonly raw: KeyValue
  readonly kv: RetryingKeyValue
  readonly discards: Discards
  readonly timers: Timers
}

export class KeyHints implements Hints {
  readonly longestBundle: number | undefined
  readonly documentChanges: DocumentChanges
  readonly #kv: RetryingKeyValue
  readonly #discards: Discards
  readonly #timers: Timers
  readonly #context: HintContext
  readonly #listing: HintListing
  readonly #bundles = new KnownBundles()
  readonly #surveyor: Surveyor
  readonly #wake: WakeObject
  readonly #follower: WakeFollower
  readonly #listeners = new WakeListeners((isOn) => (isOn ? this.#follower.start() : this.#follower.stop()))
  #documentsReadAt = 0

  constructor({ raw, kv, discards, timers }: Parts, context: HintContext) {
    this.longestBundle = kv.longestHint
    this.#kv = kv
    this.#discards = discards
    this.#timers = timers
    this.#context = context
    this.#listing = new HintListing(kv, timers)
    this.#surveyor = new Surveyor(kv, timers, context, {
      hintsIn: (key) => this.#hintsIn(key),
      known: (prefix) => this.#known(prefix),
      outdated: () => this.#listing.expire(),
    })
    this.#wake = new WakeObject(raw, timers, (changes) => this.#receive(changes))
    this.#follower = new WakeFollower(
      () => this.#wake.read(),
      timers,
      () => context.contention.yield / 3,
    )
    this.documentChanges = { announce: () => this.#wake.announceDocuments(), snapshot: () => this.#snapshot() }
  }

  /** Wakes before the write: a process that hears of it too early tries again. */
  async announce(hint: string, wakes = true): Promise<void> {
    this.#surveyor.sawHint(hint)
    if (wakes) {
      if (this.#follower.isCurrent) this.#listing.add(hint)
      this.#wake.announce([hint])
    }
    await this.#kv.create(hint, '')
  }

  reannounce(hint: string): void {
    this.#wake.announce([hint])
  }

  retire(hint: string): void {
    if (this.#follower.isCurrent && parseHint(hint)?.bundle === null) this.#listing.remove(hint)
  }

  withdraw(hints: readonly string[]): void {
    this.#discards.add(hints.flatMap((hint) => this.#deletable(hint) ?? []))
  }

  /** null: other tasks may need the bundle that this hint is in. */
  #deletable(key: string): string | null {
    const hint = parseHint(key)
    return hint === null || hint.bundle === null ? key : this.#bundles.withdraw(hint)
  }

  isWithdrawn(hint: string): boolean {
    return this.#discards.has(hint) || this.#bundles.isWithdrawn(hint)
  }

  survey(request: ClaimRequest, now: Instant, turns?: SurveyTurns): Promise<Survey> {
    return this.#surveyor.survey(request, now, turns)
  }

  async *pages(queue: string | null): AsyncGenerator<readonly Hint[]> {
    for await (const keys of this.#kv.pages(queue === null ? READY : queuePrefix(queue))) yield keys.flatMap(hintsIn)
  }

  /** The hints of a listed key that are still needed. */
  #hintsIn(key: string): readonly Hint[] {
    const bundled = this.#bundles.hintsIn(key)
    if (bundled?.length === 0) this.#discards.add([key])
    const hint = bundled === null ? parseHint(key) : null
    const hints = bundled ?? (hint === null ? [] : [hint])
    if (hints.length === 0) this.#listing.remove(key)
    return hints
  }

  async #known(prefix: string): Promise<readonly string[] | null> {
    if (!this.#follower.isCurrent) return null
    return this.#listing.keysOf(prefix, this.#follower.isIdle ? LIST_EVERY_IDLE : LIST_EVERY)
  }

  #snapshot(): string | null {
    if (!this.#follower.isCurrent) return null
    const now = this.#timers.mono()
    if (now - this.#documentsReadAt > DOCUMENTS_LIFE) this.#documentsReadAt = now
    return `${this.#wake.documents} ${this.#documentsReadAt}`
  }

  claimed(): void {
    this.#follower.busy()
  }

  listen(listener: WakeListener): () => void {
    return this.#listeners.add(listener)
  }

  #receive({ hints, documentsChanged }: WakeChanges): void {
    if (hints === null) this.#listing.expire()
    else for (const key of hints) this.#receiveHint(key)
    if (hints === null || documentsChanged) this.#listeners.notify(null)
    if (hints === null || hints.length > 0) this.#follower.busy()
  }

  /** Under contention each process waits a little: by then others have finished most of these tasks. */
  #receiveHint(key: string): void {
    const bundle = bundleOfKey(key)
    const hint = bundle === null ? parseHint(key) : null
    const receive = (): void => {
      // The cached state is older than the announcement.
      this.#context.cache.delete(key)
      this.#surveyor.sawHint(key)
      if (hint === null || hint.bundle === null) this.#listing.add(key)
      this.#listeners.notify([unescaped(queuePrefixOf(key).slice(READY.length, -1))])
    }
    const delay = this.#context.contention.delayOf(bundle ?? hint?.id ?? key)
    if (delay < SHORTEST_DELAY) receive()
    else this.#timers.after(delay, receive)
  }

  async close(): Promise<void> {
    const patience = new Promise<void>((done) => setTimeout(done, CLOSE_PATIENCE).unref())
    await Promise.race([this.#wake.close(), patience])
  }
}
