/** A store on NATS JetStream: the truth in a KV bucket, work handed out by a doorbell. */

import { isContactLost } from '../../core/errors.ts'
import type { Instant } from '../../core/task.ts'
import { unescaped } from '../kv/names.ts'
import { KvStore } from '../kv/store.ts'
import type { Inserted, Insertion, InsertOptions, Look, Want } from '../store.ts'
import { startKeeper } from '../threaded-keeper.ts'
import { Bells } from './bells.ts'
import { NatsBucket } from './bucket.ts'
import { ServerClock } from './clock.ts'
import { type Connected, connectTo, type NatsConnectionOptions, placeOf } from './connection.ts'
import { Contact } from './contact.ts'
import { asHoldfastError } from './errors.ts'
import { examine } from './examine.ts'
import { IdentityGuard } from './identity.ts'
import type { KeeperPlace } from './keeper.ts'
import { LaterHints } from './later.ts'
import { Strays } from './strays.ts'
import { durabilityOf, prepareStreams } from './streams.ts'
import { Subjects } from './subjects.ts'
import { BellSurveyor } from './survey.ts'

export interface NatsOptions extends NatsConnectionOptions {
  /** Make the bucket when there is none. Default false. */
  readonly create?: boolean
  /** Copies of a new bucket, 1 to 5. Default 1. */
  readonly replicas?: number
  /** Where the server answers /varz: with it the store can tell whether the server syncs every write. */
  readonly monitor?: string
  onWarning?(message: string): void
  onCreated?(): void
}

const LEASE_TTL = 5_000

/** A cluster that has just lost its leader answers a little later. */
const OPEN_TRIES = 5

const patiently = async <T>(call: () => Promise<T>, tries = OPEN_TRIES): Promise<T> => {
  try {
    return await call()
  } catch (error) {
    if (tries <= 1 || !isContactLost(asHoldfastError(error, ''))) throw error
    return patiently(call, tries - 1)
  }
}

/** `nats://host:4222/bucket`; several servers with commas between them. */
export const openNats = async (url: string, options: NatsOptions = {}): Promise<NatsStore> => {
  const place = placeOf(url)
  const connected = await connectTo(place, options)
  try {
    const { create = false, replicas = place.replicas, monitor = place.monitor } = options
    const subjects = new Subjects(place.bucket)
    const made = await patiently(() => prepareStreams(connected, subjects, { create, replicas }))
    const guard = new IdentityGuard(connected, subjects)
    await patiently(() => guard.expect(create))
    if (made.isNew) options.onCreated?.()
    const durability = await durabilityOf(made.replicas, monitor)
    if (!durability.isStrong)
      options.onWarning?.(
        `durability is weak (${durability.why}): a power cut can lose up to two minutes of what was acknowledged`,
      )
    const clock = new ServerClock(connected, subjects)
    await patiently(() => clock.ask())
    const { user, password, token, credentials, tls } = options
    const keeperPlace: KeeperPlace = { url, options: definedOf({ user, password, token, credentials, tls }) }
    return new NatsStore(connected, subjects, { address: place.address, clock, guard, monitor, keeperPlace })
  } catch (error) {
    await connected.nc.close()
    throw asHoldfastError(error, place.address)
  }
}

/** Only what was given: the thread is told no more. */
const definedOf = (options: Partial<Record<keyof NatsConnectionOptions, unknown>>): NatsConnectionOptions =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))

export class NatsStore extends KvStore {
  readonly #clock: ServerClock
  readonly #bells: Bells

  constructor(
    connected: Connected,
    subjects: Subjects,
    parts: {
      readonly address: string
      readonly clock: ServerClock
      readonly guard: IdentityGuard
      readonly monitor: string | undefined
      readonly keeperPlace: KeeperPlace
    },
  ) {
    const { clock } = parts
    const bells = new Bells(connected, subjects)
    const later = new LaterHints(connected, subjects)
    const strays = new Strays(connected, subjects, clock)
    const contact = new Contact(connected, parts.address)
    const guard = parts.guard.check
    super(new NatsBucket(connected, subjects, parts.address, { bells, later, clock, contact, guard }), {
      capabilities: ['durable'],
      leaseTtl: LEASE_TTL,
      keeper: (own) => startKeeper({ beside: import.meta.url, name: 'holdfast-nats', place: parts.keeperPlace }, own),
      examine: () => contact.run(() => examine(connected, subjects, parts.monitor)),
      surveyor: (memory, isTaken) => new BellSurveyor({ bells, later, strays, contact }, memory, isTaken),
    })
    this.#clock = clock
    this.#bells = bells
  }

  override insert(insertions: readonly Insertion[], options: InsertOptions): Promise<Inserted[]> {
    this.#see(options.now)
    return super.insert(insertions, options)
  }

  override claim(want: Want): Promise<Look> {
    this.#see(want.now)
    return super.claim(want)
  }

  /** A hint that is not due at the caller's time waits for later, also when that is not the server's. */
  #see(now: Instant | null): void {
    this.#clock.see(now)
  }

  override wake(listener: (queues: readonly string[] | null) => void): () => void {
    const off = super.wake(listener)
    const deaf = this.#bells.kinds.listen((queues) => listener(queues.map(unescaped)))
    return () => {
      off()
      deaf()
    }
  }
}
