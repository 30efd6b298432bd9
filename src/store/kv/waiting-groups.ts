/** Which groups of a queue wait, by name. A hint tells only the hash of a group, its task the name. */
import { isContactLost } from '../../core/errors.ts'
import { groupsInTurn } from '../../core/flow/group-turns.ts'
import type { Instant } from '../../core/task.ts'
import type { ClaimRequest, GroupsRequest } from '../store.ts'
import type { Hints } from './hints/hints.ts'
import type { Hint } from './records/hint-names.ts'
import { groupHash } from './records/names.ts'
import { isLive, type Tasks } from './records/tasks.ts'

const MOST_NAMES = 10_000
/** Some hints of a group may be left from tasks that have ended. */
const READS = 3

export class WaitingGroups {
  readonly #hints: Hints
  readonly #tasks: Tasks
  /** By hash. */
  readonly #names = new Map<string, string>()

  constructor(hints: Hints, tasks: Tasks) {
    this.#hints = hints
    this.#tasks = tasks
  }

  async find({ queue, types, after, limit }: GroupsRequest, now: Instant): Promise<readonly string[]> {
    const request: ClaimRequest = {
      queue,
      types,
      limit,
      workerId: '',
      op: '',
      leaseTtl: 0,
      dueLimit: 0,
      now,
    }
    const behind = after === null || after === '' ? after : groupHash(after)
    const { ready } = await this.#hints.survey(request, now, { after: behind, mostEach: 1, isPassed: () => false })
    const grouped = ready.filter(({ group }) => group !== null)
    const inTurn = groupsInTurn(grouped, behind).slice(0, limit)
    const names = await Promise.all(
      inTurn.map((hash) => this.#nameOf(hash, grouped.filter(({ group }) => group === hash).slice(0, READS))),
    )
    return names.filter((name) => name !== null)
  }

  async #nameOf(hash: string, hints: readonly Hint[]): Promise<string | null> {
    const known = this.#names.get(hash)
    if (known !== undefined) return known
    for (const { id } of hints) {
      const stored = await this.#tasks.read(id).catch((error: unknown) => {
        if (isContactLost(error)) throw error
        return null
      })
      if (!isLive(stored) || stored.task.group === null || groupHash(stored.task.group) !== hash) continue
      this.#names.set(hash, stored.task.group)
      if (this.#names.size > MOST_NAMES) this.#names.delete(this.#names.keys().next().value!)
      return stored.task.group
    }
    return null
  }
}
