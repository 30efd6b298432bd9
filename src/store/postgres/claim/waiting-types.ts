/**
 * The types that wait in a queue, for claims of any type: at most 500 in one look, so that its cost is bounded. If there are more, looks
 * take turns: the next one begins where this one ended.
 */
import type { Instant } from '../../../core/task.ts'
import type { Executor } from '../connection.ts'

const MOST_TYPES = 500

/** Found by jumping along the index. */
const typesText = (schema: string): string => {
  const first = (after: string): string =>
    `select t.type from ${schema}.task t where t.status = 'pending' and t.queue = $1 and t.type > ${after} order by t.type limit 1`
  return `
    with recursive waiting(type) as (
      (${first('$2')})
      union all
      select (${first('w.type')}) from waiting w where w.type is not null
    ) select w.type from waiting w where w.type is not null limit ${MOST_TYPES + 1}`
}

interface Turn {
  readonly after: string
  /** When the next task of the types that this round has passed is due. */
  readonly later: Instant | null
}

export interface Window {
  readonly types: readonly string[]
  /** Call it after looking at these types. Returns when to look again if nothing was leased. `next` is the next due time of these types, `now` the server's time. */
  turnOver(next: Instant | null, now: Instant): Instant | null
}

export class WaitingTypes {
  readonly #executor: Executor
  readonly #text: string
  readonly #turns = new Map<string, Turn>()

  constructor(executor: Executor, schema: string) {
    this.#executor = executor
    this.#text = typesText(schema)
  }

  async next(queue: string): Promise<Window> {
    const turn = this.#turns.get(queue) ?? null
    const rows = await this.#executor.query(this.#text, [queue, turn?.after ?? ''])
    const types = rows.slice(0, MOST_TYPES).map(([type]) => type as string)
    const isCut = rows.length > MOST_TYPES
    return {
      types,
      turnOver: (next, now) => {
        const later = turn?.later == null ? next : next === null ? turn.later : Math.min(turn.later, next)
        if (isCut) this.#turns.set(queue, { after: types.at(-1)!, later })
        else this.#turns.delete(queue)
        return isCut ? now : later
      },
    }
  }
}
