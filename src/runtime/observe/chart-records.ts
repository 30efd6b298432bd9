/** Chart slots in documents: minutes, ten minutes and hours, each kept as long as a chart shows it. */
import { type ChartSlot, merged, slotStart } from '../../core/observe/chart-slot.ts'
import { CHART } from '../../core/storage/document-names.ts'
import type { Instant } from '../../core/task.ts'
import { editDocument } from '../documents.ts'
import type { Session } from '../session.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** Slots of one length lie together in documents of another, which are removed when they are old. */
interface Tier {
  readonly name: string
  readonly slot: number
  readonly document: number
  readonly kept: number
}

export const MINUTES: Tier = { name: 'minutes/', slot: MINUTE, document: 10 * MINUTE, kept: 2 * HOUR }
export const TENS: Tier = { name: 'tens/', slot: 10 * MINUTE, document: 2 * HOUR, kept: 28 * HOUR }
export const HOURS: Tier = { name: 'hours/', slot: HOUR, document: DAY, kept: 9 * DAY }
const TIERS = [MINUTES, TENS, HOURS] as const

export type Slots = ReadonlyMap<Instant, ChartSlot>

export class ChartRecords {
  readonly #session: Session

  constructor(session: Session) {
    this.#session = session
  }

  /** The slots since then that are stored. */
  async read(tier: Tier, from: Instant): Promise<Slots> {
    const names: string[] = []
    const now = this.#session.time.now()
    for (let at = slotStart(from, tier.document); at <= now; at += tier.document) names.push(nameOf(tier, at))
    const documents = await Promise.all(names.map((name) => this.#session.store.documents.get(name)))
    return new Map(documents.flatMap((document) => (document === null ? [] : [...slotsIn(document.value)])))
  }

  /** A stored minute is never overwritten. Longer slots are made of the shorter ones, as far as these are there. */
  async write(at: Instant, slot: ChartSlot): Promise<void> {
    const minutes = await this.#put(MINUTES, at, (before) => before ?? slot)
    const ten = slotStart(at, TENS.slot)
    const tens = await this.#put(TENS, ten, (before) => fuller(before, grouped(minutes, TENS.slot, ten).get(ten)!))
    const hour = slotStart(at, HOURS.slot)
    await this.#put(HOURS, hour, (before) => fuller(before, grouped(tens, HOURS.slot, hour).get(hour)!))
  }

  /** All slots of the document, after the change. */
  async #put(tier: Tier, at: Instant, decide: (before: ChartSlot | undefined) => ChartSlot): Promise<Slots> {
    let slots: Slots = new Map()
    await editDocument(this.#session, nameOf(tier, at), (text) => {
      const before = text === null ? new Map<Instant, ChartSlot>() : slotsIn(text)
      const slot = decide(before.get(at))
      slots = new Map([...before, [at, slot]])
      return slot === before.get(at) ? text : textOf(slots)
    })
    if (at === slotStart(at, tier.document)) await this.#remove(nameOf(tier, at - tier.kept))
    return slots
  }

  /** Removes what is too old: of the time before this process. */
  async sweep(): Promise<void> {
    const now = this.#session.time.now()
    for (const tier of TIERS) {
      for (const { name } of await this.#session.store.documents.list(CHART + tier.name)) {
        const at = Date.parse(name.slice(CHART.length + tier.name.length))
        if (at < now - tier.kept) await this.#remove(name)
      }
    }
  }

  async #remove(name: string): Promise<void> {
    const { documents } = this.#session.store
    const document = await documents.get(name)
    if (document !== null) await documents.delete(name, document.version)
  }
}

const nameOf = (tier: Tier, at: Instant): string =>
  CHART + tier.name + new Date(slotStart(at, tier.document)).toISOString()

/** A damaged document counts as missing. */
const slotsIn = (text: string): Map<Instant, ChartSlot> => {
  try {
    return new Map((JSON.parse(text) as [Instant, ChartSlot][]).map(([at, slot]) => [at, slot]))
  } catch {
    return new Map()
  }
}

const textOf = (slots: Slots): string =>
  JSON.stringify(
    [...slots].sort(([a], [b]) => a - b),
    (_, value) => (typeof value === 'number' ? Math.round(value * 100) / 100 : value),
  )

/** Slots of a greater length from the shorter ones that begin at `from` or later. */
export const grouped = (slots: Slots, length: number, from: Instant): Slots => {
  const parts = new Map<Instant, ChartSlot[]>()
  for (const [at, slot] of [...slots].sort(([a], [b]) => a - b)) {
    const start = slotStart(at, length)
    if (start >= slotStart(from, length)) parts.set(start, [...(parts.get(start) ?? []), slot])
  }
  return new Map([...parts].map(([at, some]) => [at, merged(some)]))
}

/** Another process may have seen more minutes of it. */
const fuller = (before: ChartSlot | undefined, now: ChartSlot): ChartSlot =>
  before !== undefined && before.minutes >= now.minutes ? before : now
