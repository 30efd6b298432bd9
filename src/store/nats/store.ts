/** A store on NATS JetStream: records in a KV bucket, work delivered by ready messages from a work-queue stream. */

import { HoldfastError, isContactLost } from '../../core/errors.ts'
import { checkInteger } from '../../core/submission.ts'
import type { Instant } from '../../core/task.ts'
import { checkOptionNames } from '../../core/values/option-names.ts'
import { withMissingRights } from '../kv/missing-rights.ts'
import { KvStore } from '../kv/store.ts'
import type { ClaimRequest, ClaimResult, Inserted, Insertion, InsertOptions, Keeper, KeeperOptions } from '../store.ts'
import { threadedKeeper } from '../threads/threaded-keeper.ts'
import { NatsBucket } from './bucket.ts'
import { ServerClock } from './clock.ts'
import { type Connected, connectTo, type NatsConnectionOptions, placeOf } from './connection/connection.ts'
import { Contact } from './connection/contact.ts'
import { asHoldfastError, withoutJetStream } from './connection/errors.ts'
import { examine } from './examine.ts'
import { IdentityGuard } from './identity.ts'
import type { KeeperPlace } from './keeper.ts'
import { Announcements } from './messages/announcements.ts'
import { GroupedHints } from './messages/grouped-hints.ts'
import { LaterHints } from './messages/later-hints.ts'
import { LostDeliveries } from './messages/lost-deliveries.ts'
import { MessageHints } from './messages/message-hints.ts'
import { ReadyMessages } from './messages/ready-messages.ts'
import { missingRights } from './rights.ts'
import { durabilityOf, prepareStreams } from './streams.ts'
import { Subjects } from './subjects.ts'

/** Options of `openNats`. */
export interface NatsOptions extends NatsConnectionOptions {
  /** Create the bucket if it does not exist. Default false. */
  readonly create?: boolean
  /** Copies of a new bucket, 1 to 5. Default 1. */
  readonly replicas?: number
  /** The monitoring address of the server. With it the store can tell whether the server syncs every write. */
  readonly monitor?: string
  /** Called for what an operator should know. */
  onWarning?(message: string): void
  /** Called when there was no store and one was created. */
  onCreated?(): void
}

const OPTIONS: ReadonlySet<string> = new Set<keyof NatsOptions>([
  'create',
  'replicas',
  'monitor',
  'user',
  'password',
  'token',
  'credentials',
  'inboxPrefix',
  'domain',
  'tls',
  'onWarning',
  'onCreated',
])
const MOST_REPLICAS = 5

const LEASE_TTL = 5_000

/** A cluster that has just lost its leader answers a little later. */
const OPEN_TRIES = 5

const retryOpening = async <T>(call: () => Promise<T>, tries = OPEN_TRIES): Promise<T> => {
  try {
    return await call()
  } catch (error) {
    if (tries <= 1 || !isContactLost(asHoldfastError(error, ''))) throw error
    return retryOpening(call, tries - 1)
  }
}

/** `nats://host:4222/bucket`. Several servers are separated by commas. */
export const openNats = async (url: string, options: NatsOptions = {}): Promise<NatsStore> => {
  const place = placeOf(url)
  checkOptionNames(options, OPTIONS, 'nats')
  const { create = false, replicas = place.replicas, monitor = place.monitor } = options
  if (replicas !== undefined) checkInteger(replicas, 'replicas', 1, MOST_REPLICAS)
  if (monitor !== undefined) checkMonitor(monitor)
  const connected = await connectTo(place, options)
  const subjects = new Subjects(place.bucket)
  try {
    const made = await retryOpening(() => prepareStreams(connected, subjects, { create, replicas }))
    const guard = new IdentityGuard(connected, subjects)
    await retryOpening(() => guard.expect(create))
    if (made.isNew) options.onCreated?.()
    const warn = warning(made.replicas, monitor, options)
    if (made.isNew) await warn()
    const clock = new ServerClock(connected, subjects, () => guard.info())
    await retryOpening(() => clock.ask())
    const { user, password, token, credentials, tls, inboxPrefix, domain } = options
    const own = definedOf({ user, password, token, credentials, tls, inboxPrefix, domain })
    const keeperPlace: KeeperPlace = { url, options: own }
    const thread = {
      beside: import.meta.url,
      name: 'holdfast-nats',
      place: keeperPlace,
      settings: 'the options of nats',
      keepsClaims: 'by-id',
    } as const
    const keeper = threadedKeeper(thread, options.onWarning?.bind(options))
    return new NatsStore(connected, subjects, { address: place.address, clock, guard, monitor, keeper, warn })
  } catch (error) {
    const refusal = await withMissingRights(asHoldfastError(error, place.address), 'this user may not', () =>
      missingRights(connected, subjects),
    )
    await connected.nc.close()
    // The servers of another domain may only be unreachable.
    const isOwnDomain = (options.domain ?? place.domain) === undefined
    throw (isOwnDomain ? withoutJetStream(error, place.address) : null) ?? refusal
  }
}

const checkMonitor = (monitor: string): void => {
  if (/^https?:$/.test(URL.parse(monitor)?.protocol ?? '')) return
  throw new HoldfastError('INVALID_OPTION', `monitor: '${monitor}' is not an http address: write http://host:8222`, {
    field: 'monitor',
  })
}

/**
 * Warns once for each client: when it creates a store, or when its first worker starts. Clients that only submit or read do
 * not warn.
 */
const warning = (replicas: number, monitor: string | undefined, { onWarning }: NatsOptions): (() => Promise<void>) => {
  let isDone = false
  return async () => {
    if (isDone || onWarning === undefined) return
    isDone = true
    const { isStrong, why } = await durabilityOf(replicas, monitor)
    if (!isStrong)
      onWarning(`durability is weak (${why}): a power cut can lose up to two minutes of what was acknowledged`)
  }
}

/** Leaves out undefined options, which the thread need not get. */
const definedOf = (options: Partial<Record<keyof NatsConnectionOptions, unknown>>): NatsConnectionOptions =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))

/** A store in a bucket of NATS JetStream. */
export class NatsStore extends KvStore {
  readonly #clock: ServerClock

  constructor(
    connected: Connected,
    subjects: Subjects,
    parts: {
      readonly address: string
      readonly clock: ServerClock
      readonly guard: IdentityGuard
      readonly monitor: string | undefined
      readonly keeper: ((options: KeeperOptions) => Keeper) | undefined
      readonly warn: () => Promise<void>
    },
  ) {
    const { clock, keeper } = parts
    const announcements = new Announcements(connected, subjects)
    const messages = new ReadyMessages(connected, subjects, announcements)
    const grouped = new GroupedHints(connected, subjects, announcements)
    const later = new LaterHints(connected, subjects, announcements, clock, grouped)
    const lost = new LostDeliveries(connected, subjects, clock)
    const contact = new Contact(connected, parts.address)
    const place = { connected, subjects, clock, contact, checkIdentity: parts.guard.check, wrote: parts.guard.wrote }
    super(new NatsBucket(parts.address, place), {
      capabilities: [],
      leaseTtl: LEASE_TTL,
      ...(keeper && {
        keeper: (own: KeeperOptions) => {
          // Only a worker starts a keeper.
          void parts.warn()
          return keeper(own)
        },
      }),
      examine: () => contact.run(() => examine(connected, subjects, parts.monitor)),
      renewIdentity: () => contact.run(() => parts.guard.renew()),
      hints: (context) => new MessageHints({ ...place, messages, announcements, later, grouped, lost }, context),
    })
    this.#clock = clock
  }

  override insert(insertions: readonly Insertion[], options: InsertOptions): Promise<Inserted[]> {
    this.#useCallerTime(options.now)
    return super.insert(insertions, options)
  }

  override claim(request: ClaimRequest): Promise<ClaimResult> {
    this.#useCallerTime(request.now)
    return super.claim(request)
  }

  /** Whether a hint is due is decided by the caller's time, also if that is not the server's. */
  #useCallerTime(now: Instant | null): void {
    this.#clock.setCallerTime(now)
  }
}
