/** What a look finds here: the bells that are handed to it, what was waiting for this time, and leases that we know have lapsed. */
import type { Instant } from '../../core/task.ts'
import type { MemoryOfLooks } from '../kv/memory-of-looks.ts'
import { type Hint, queuePrefix, READY } from '../kv/names.ts'
import type { Survey, SurveysHints } from '../kv/survey.ts'
import type { Want } from '../store.ts'
import type { Bells } from './bells.ts'
import type { Contact } from './contact.ts'
import type { Later, LaterHints } from './later.ts'
import type { Strays } from './strays.ts'
import { hintOf, type Kind } from './subjects.ts'

interface Parts {
  readonly bells: Bells
  readonly later: LaterHints
  readonly strays: Strays
  readonly contact: Contact
}

/** Of those whose time has come: as many are rung for in one look. */
const MOST_TURNS = 500
/** Before asking again for a bell that was rung this moment. */
const FIRST_WAIT = 2
/** After what time to look again for tasks that were not there yet; each time twice as long. */
const FIRST_AGAIN = 10
const LAST_AGAIN = 2_000
/** How long a task that waits although its bell was handed out is left to whoever has it. */
const PATIENCE = 5_000

export class BellSurveyor implements SurveysHints {
  readonly #bells: Bells
  readonly #later: LaterHints
  readonly #strays: Strays
  readonly #contact: Contact
  readonly #memory: MemoryOfLooks
  readonly #isTaken: (hint: string) => boolean

  constructor({ bells, later, strays, contact }: Parts, memory: MemoryOfLooks, isTaken: (hint: string) => boolean) {
    this.#bells = bells
    this.#later = later
    this.#strays = strays
    this.#contact = contact
    this.#memory = memory
    this.#isTaken = isTaken
  }

  survey(want: Want, now: Instant): Promise<Survey> {
    return this.#contact.run(() => this.#survey(want, now))
  }

  async #survey(want: Want, now: Instant): Promise<Survey> {
    const prefix = queuePrefix(want.queue)
    const queue = prefix.slice(READY.length, -1)
    const found = new Found(now)
    const later = await this.#later.look(queue, now)
    if (later.next !== null) found.later(later.next)
    const turns = later.due.filter(({ what }) => what === 'turn')
    await Promise.all(turns.slice(0, MOST_TURNS).map((turn) => this.#ring(turn)))
    if (turns.length > MOST_TURNS) found.later(now)
    for (const { what, hint } of later.due) if (what === 'expiry') this.#expired(hintOf(hint), found)
    for (const [key, until] of this.#memory.leased(prefix)) {
      if (until > now) found.later(until)
      else if (!this.#isTaken(key)) found.isOverdue(hintOf(key), until)
    }
    this.#offerHeld(queue, want, found)
    if (want.limit > 0) await this.#take(queue, want, found)
    return found.survey()
  }

  /** Its turn has come. Whoever else moves it at this moment rings the same bell. */
  async #ring(turn: Later): Promise<void> {
    await this.#bells.ring(turn.hint, true)
    await this.#later.remove(turn)
  }

  #expired(hint: Hint, found: Found): void {
    const known = this.#memory.get(hint.key)
    if (known !== undefined && known.until > found.now && known.task !== 'pending') found.later(known.until)
    else if (!this.#isTaken(hint.key)) found.isOverdue(hint, hint.expiresAt!)
  }

  /** In our hands, but not leased: what was ahead of its task, or what an earlier look had no room for. */
  #offerHeld(queue: string, want: Want, found: Found): void {
    for (const key of [...this.#bells.heldIn(queue)]) {
      if (this.#memory.get(key)?.task === 'leased' || this.#isTaken(key)) continue
      const hint = hintOf(key)
      if (!isWanted(hint, want) || found.ready.length >= want.limit) this.#bells.giveBack(key)
      else this.#offer(hint, found)
    }
  }

  #offer(hint: Hint, found: Found): void {
    // Only what was ahead of its task is offered less and less often.
    const isAhead = this.#memory.get(hint.key)?.task === 'behind'
    const againAt = isAhead && hint.at <= found.now ? this.#bells.offer(hint.key) : null
    if (hint.at > found.now) found.later(hint.at)
    else if (againAt === null) found.ready.push(hint)
    else found.later(found.now + Math.max(1, Math.ceil(againAt - performance.now())))
  }

  /** The highest priority first; of one priority all types at once, and what is too much goes back. */
  async #take(queue: string, want: Want, found: Found): Promise<void> {
    const kinds = (await this.#bells.kinds.in(queue)).filter((kind) => isWanted(hintOfKind(kind), want))
    const priorities = [...new Set(kinds.map(({ priority }) => Number(priority)))].sort((a, b) => b - a)
    for (const priority of priorities) {
      const room = want.limit - found.ready.length
      if (room <= 0) return found.later(found.now)
      const group = kinds.filter((kind) => Number(kind.priority) === priority)
      await this.#findStrays(group, found)
      const taken = await this.#takeOf(group, room)
      if (taken.some(({ isFull }) => isFull) || this.#bells.areJustRung(group)) found.later(found.now)
      const hints = taken.flatMap((one) => one.hints).map(hintOf)
      if (hints.length > 0) this.#againSoon(queue, hints)
      for (const hint of hints.sort((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1))) {
        const known = this.#memory.get(hint.key)
        // Handed out once more, though it is at work: now it is ours to watch.
        if (known?.task === 'leased' && known.until > found.now) continue
        if (found.ready.length < want.limit) this.#offer(hint, found)
        else {
          this.#bells.giveBack(hint.key)
          found.later(found.now)
        }
      }
    }
  }

  /** A bell may be heard before its task is written: then the next look is soon, not when another one rings. */
  #againSoon(queue: string, hints: readonly Hint[], wait = FIRST_AGAIN): void {
    setTimeout(() => {
      const ahead = hints.filter(({ key }) => this.#bells.isHeld(key) && this.#memory.get(key)?.task === 'behind')
      if (ahead.length === 0) return
      this.#bells.kinds.wake([queue])
      this.#againSoon(queue, ahead, Math.min(LAST_AGAIN, wait * 2))
    }, wait).unref()
  }

  async #takeOf(kinds: readonly Kind[], most: number) {
    for (let wait = FIRST_WAIT; ; wait *= 2) {
      const taken = await Promise.all(kinds.map((kind) => this.#bells.take(kind, most)))
      if (taken.some(({ hints }) => hints.length > 0) || !this.#bells.areJustRung(kinds)) return taken
      await new Promise((later) => setTimeout(later, wait))
    }
  }

  /** Of a bell in nobody's hands the task is read; if it is still waiting then, the bell is rung again. */
  async #findStrays(kinds: readonly Kind[], found: Found): Promise<void> {
    for (const key of kinds.flatMap((kind) => this.#strays.find(kind))) {
      const known = this.#memory.get(key)
      if (this.#bells.isHeld(key) || this.#isTaken(key) || known?.task === 'leased') continue
      if (known?.task !== 'pending') found.unknown.push(hintOf(key))
      else if (found.now - hintOf(key).at > PATIENCE) {
        this.#memory.delete(key)
        await this.#bells.ring(key)
      }
    }
  }
}

const isWanted = ({ type }: { readonly type: string }, { types, limit }: Want): boolean =>
  limit > 0 && (types?.includes(type) ?? true)

/** A hint of this kind: for its type as it is, not as it stands in keys. */
const hintOfKind = ({ queue, type, priority }: Kind): Hint => hintOf(`${READY}${queue}/0/id~${type}~${priority}~0~~0`)

class Found {
  readonly now: Instant
  readonly ready: Hint[] = []
  readonly overdue = new Map<string, Hint>()
  readonly unknown: Hint[] = []
  #next = Number.POSITIVE_INFINITY

  constructor(now: Instant) {
    this.now = now
  }

  isOverdue(hint: Hint, since: Instant): void {
    this.overdue.set(hint.key, hint)
    this.later(since)
  }

  later(instant: Instant): void {
    this.#next = Math.min(this.#next, instant)
  }

  survey(): Survey {
    this.ready.sort((a, b) => b.priority - a.priority || a.at - b.at || (a.id < b.id ? -1 : 1))
    return {
      ready: this.ready,
      overdue: [...this.overdue.values()],
      unknown: this.unknown,
      next: this.#next === Number.POSITIVE_INFINITY ? null : this.#next,
    }
  }
}
