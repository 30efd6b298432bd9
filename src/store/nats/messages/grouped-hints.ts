/**
 * Hints of grouped tasks that are due. They wait in the stream of hints for later, in one subject for each queue, group and priority. A survey
 * reads as many of each group as it needs, so that a long line of one group hides no other, and there is no consumer for a group.
 */
import type { Hint } from '../../kv/records/hint-names.ts'
import type { Connected } from '../connection/connection.ts'
import { isNotFound } from '../connection/errors.ts'
import { hintOf, type Subjects } from '../subjects.ts'
import type { Announcements } from './announcements.ts'

/** The hints of one group and priority, as far as this process has read them. */
interface Line {
  readonly group: string
  readonly priority: number
  /** With the sequence of each message. */
  readonly hints: Map<string, number>
  /** The sequence from which to read on. */
  from: number
  /** There was nothing more to read. */
  isRead: boolean
  /** Monotonic: until when a hint is left to the claim that was offered it. */
  readonly offeredUntil: Map<string, number>
}

/** What a survey wants of the groups. */
export interface GroupsWanted {
  readonly queue: string
  readonly priority: number
  /** At most this many hints, of at most `mostGroups` groups. */
  readonly most: number
  readonly mostGroups: number
  /** Of one group. */
  readonly mostOfGroup: number
  /** The group behind which to begin, by hash; null: anywhere. */
  readonly after: string | null
  /** Another claim of this process should not be offered the same hints. */
  readonly isExclusive: boolean
  isUsable(hint: string): boolean
  /** A hint is left to another claim for this long. */
  leftFor(delay: number): void
  isPassed(group: string): boolean
}

export interface GroupsTaken {
  readonly hints: readonly Hint[]
  /** The last group that it has looked at; null: all. */
  readonly cutAt: string | null
  /** A line has more hints than it has given. */
  readonly hasMore: boolean
}

/** Only a process that surveyed the queue within this time follows its groups: it remembers the hints that it adds, and what others announce. */
const REMEMBER_FOR = 10_000
/** Lines that are read at once. */
const AT_ONCE = 16
/** How long a hint is left to the claim that was offered it. By then that claim has leased it or knows why not. */
const OFFER = 250
/** Messages that one survey reads of a line. Those at its beginning may belong to running tasks. */
const MOST_READ = 200

export class GroupedHints {
  readonly #connected: Connected
  readonly #subjects: Subjects
  readonly #announcements: Announcements
  /** By queue, and by group and priority. */
  readonly #queues = new Map<string, Map<string, Line>>()
  /** Monotonic, by queue. */
  readonly #surveyedAt = new Map<string, number>()
  /** Queues that got a hint while this process did not follow them: the next survey lists their groups. */
  readonly #unlisted = new Set<string>()
  /** By queue: the group that a survey without turns began with. */
  readonly #cursors = new Map<string, string>()

  constructor(connected: Connected, subjects: Subjects, announcements: Announcements) {
    this.#connected = connected
    this.#subjects = subjects
    this.#announcements = announcements
    announcements.on('group', (key) => {
      const [queue, group, priority] = key.split('/') as [string, string, string]
      if (this.#follows(queue)) this.#line(queue, group, Number(priority)).isRead = false
      else this.#unlisted.add(queue)
    })
  }

  surveyed(queue: string): void {
    this.#surveyedAt.set(queue, performance.now())
  }

  #follows(queue: string): boolean {
    return performance.now() - (this.#surveyedAt.get(queue) ?? Number.NEGATIVE_INFINITY) < REMEMBER_FOR
  }

  /** Finds what was announced while this process did not follow the queue. */
  async catchUp(queue: string): Promise<void> {
    if (!this.#unlisted.delete(queue)) return
    try {
      const subjects = await this.#connected.subjectsIn(this.#subjects.later, this.#subjects.groupedIn(queue))
      for (const subject of subjects) {
        const { group, priority } = this.#subjects.parseGrouped(subject)!
        this.#line(queue, group, priority).isRead = false
      }
    } catch (error) {
      this.#unlisted.add(queue)
      throw error
    }
  }

  #line(queue: string, group: string, priority: number): Line {
    const lines = this.#queues.get(queue) ?? new Map<string, Line>()
    this.#queues.set(queue, lines)
    const name = `${group} ${priority}`
    const line = lines.get(name) ?? {
      group,
      priority,
      hints: new Map(),
      from: 1,
      isRead: false,
      offeredUntil: new Map(),
    }
    lines.set(name, line)
    return line
  }

  /** `once`: another process may announce the same hint at this moment. */
  async announce(key: string, once = false): Promise<void> {
    const { queue, group, priority } = placeOf(key)
    const subject = this.#subjects.grouped(queue, group, priority)
    const sequence = await this.#connected.requests.write(subject, key, once ? { id: key } : {})
    if (this.#follows(queue)) this.#line(queue, group, priority).hints.set(key, sequence)
    else this.#unlisted.add(queue)
    this.#announcements.send('group', `${queue}/${group}/${priority}`)
  }

  /** What a list of all subjects shows, with the number of messages of each. It finds lines whose announcement was lost. */
  listed(subjects: Readonly<Record<string, number>>): void {
    const seen = new Set<Line>()
    for (const [subject, count] of Object.entries(subjects)) {
      const found = this.#subjects.parseGrouped(subject)
      if (found === null) continue
      const line = this.#line(found.queue, found.group, found.priority)
      seen.add(line)
      if (count > line.hints.size) line.isRead = false
    }
    for (const lines of this.#queues.values())
      for (const [name, line] of lines) if (!seen.has(line) && line.hints.size === 0) lines.delete(name)
  }

  prioritiesOf(queue: string): readonly number[] {
    return [...new Set([...(this.#queues.get(queue)?.values() ?? [])].map(({ priority }) => priority))]
  }

  /** Hints of one priority, from group to group. */
  async take(wanted: GroupsWanted): Promise<GroupsTaken> {
    const { queue, priority, most, isPassed, isUsable } = wanted
    const from = wanted.after ?? this.#cursors.get(queue) ?? ''
    const all = [...(this.#queues.get(queue)?.values() ?? [])].filter((line) => line.priority === priority)
    const lines = all
      .filter((line) => !isPassed(line.group))
      .sort((a, b) => Number(a.group <= from) - Number(b.group <= from) || (a.group < b.group ? -1 : 1))
    // Of a group that is passed over one known hint is enough, to tell that it waits.
    const hints = all.flatMap((line) => (isPassed(line.group) ? firstOf(line, isUsable) : []))
    let groups = 0
    let hasMore = false
    for (let at = 0; at < lines.length; at += AT_ONCE) {
      if (hints.length >= most || groups >= wanted.mostGroups)
        return { hints, cutAt: lines[at - 1]!.group, hasMore: true }
      const some = lines.slice(at, at + AT_ONCE)
      for (const found of await Promise.all(some.map((line) => this.#takeOf(line, wanted)))) {
        hints.push(...found)
        if (found.length > 0) groups++
        hasMore ||= found.length >= wanted.mostOfGroup
      }
      hasMore ||= some.some(({ isRead }) => !isRead)
      this.#cursors.set(queue, some.at(-1)!.group)
    }
    return { hints, cutAt: null, hasMore }
  }

  async #takeOf(line: Line, wanted: GroupsWanted): Promise<readonly Hint[]> {
    const { queue, mostOfGroup, isExclusive } = wanted
    const { offeredUntil } = line
    const now = performance.now()
    const isUsable = (hint: string): boolean => {
      if (!wanted.isUsable(hint)) return false
      const left = (offeredUntil.get(hint) ?? 0) - now
      if (left > 0) wanted.leftFor(left)
      return left <= 0
    }
    const hints: string[] = []
    const offer = (hint: string): void => {
      hints.push(hint)
      if (isExclusive) offeredUntil.set(hint, now + OFFER)
    }
    for (const hint of line.hints.keys()) {
      if (hints.length >= mostOfGroup) break
      if (isUsable(hint)) offer(hint)
    }
    for (let read = 0; hints.length < mostOfGroup && !line.isRead && read < MOST_READ; read++) {
      const message = await this.#next(this.#subjects.grouped(queue, line.group, line.priority), line.from)
      if (message === null) line.isRead = true
      else {
        line.from = message.seq + 1
        line.hints.set(message.string(), message.seq)
        if (isUsable(message.string())) offer(message.string())
      }
    }
    return hints.map(hintOf)
  }

  async #next(subject: string, seq: number) {
    try {
      const query = { seq, next_by_subj: subject }
      return await this.#connected.jsm.streams.getMessage(this.#subjects.later, query)
    } catch (error) {
      if (isNotFound(error)) return null
      throw error
    }
  }

  /** Forgets the sequence of the message if it is known. A reader of an unknown one finds it obsolete. */
  forget(key: string): number | null {
    const { queue, group, priority } = placeOf(key)
    const line = this.#queues.get(queue)?.get(`${group} ${priority}`)
    const sequence = line?.hints.get(key) ?? null
    line?.hints.delete(key)
    line?.offeredUntil.delete(key)
    return sequence
  }
}

const firstOf = (line: Line, isUsable: (hint: string) => boolean): Hint[] => {
  for (const key of line.hints.keys()) if (isUsable(key)) return [hintOf(key)]
  return []
}

const placeOf = (key: string): { readonly queue: string; readonly group: string; readonly priority: number } => {
  const { group, priority } = hintOf(key)
  return { queue: key.split('/')[1]!, group: group!, priority }
}
