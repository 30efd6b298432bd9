/** Shared by verbs that move tasks by id: a result for each, and the worst exit code. */
import { type Client, HoldfastError, type Task } from '../../../index.ts'
import { errorFacts } from '../../output/errors.ts'
import { EXIT, EXIT_CODES } from '../../output/exit-codes.ts'
import { err, out, outJson, paint, printable } from '../../output/render.ts'
import { type GlobalOptions, withClient } from '../../program/session.ts'

type Result = { readonly id: string; readonly task: Task } | { readonly id: string; readonly error: HoldfastError }

export interface Verb {
  move(client: Client, id: string): Promise<Task>
  /** The result in words: `cancelled`, `asked to stop`. */
  describe(task: Task): string
}

export const eachTask = (ids: readonly string[], options: GlobalOptions, { move, describe }: Verb): Promise<number> =>
  withClient(options, { create: false }, async (client) => {
    const results: Result[] = []
    for (const id of new Set(ids)) {
      const result = await attempt(id, () => move(client, id))
      results.push(result)
      if (!options.json) print(result, describe)
    }
    if (options.json)
      outJson(results.map((result) => ('task' in result ? result : { id: result.id, error: errorFacts(result.error) })))
    return Math.max(EXIT.ok, ...results.map((result) => ('error' in result ? EXIT_CODES[result.error.code] : EXIT.ok)))
  })

const print = (result: Result, describe: Verb['describe']): void => {
  if ('task' in result) out(`${result.id} ${describe(result.task)}`)
  else {
    const { code, message } = result.error
    err(`${printable(result.id)} ${paint('red', 'error', process.stderr)}: ${printable(message)} (${code})`)
  }
}

const attempt = async (id: string, move: () => Promise<Task>): Promise<Result> => {
  try {
    return { id, task: await move() }
  } catch (error) {
    if (error instanceof HoldfastError) return { id, error }
    throw error
  }
}
