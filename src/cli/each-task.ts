/** Verbs that move several tasks by hand: a result for each, and the exit code of the worst. */
import { type Client, HoldfastError, type Task } from '../index.ts'
import { errorFacts } from './errors.ts'
import { EXIT, EXIT_CODES } from './exit-codes.ts'
import { err, out, outJson, paint, printable } from './render.ts'
import { type GlobalOptions, withClient } from './session.ts'

type Result = { readonly id: string; readonly task: Task } | { readonly id: string; readonly error: HoldfastError }

export interface Verb {
  move(client: Client, id: string): Promise<Task>
  /** What became of it: `cancelled`, `asked to stop`. */
  told(task: Task): string
}

export const eachTask = (ids: readonly string[], options: GlobalOptions, { move, told }: Verb): Promise<number> =>
  withClient(options, { create: false }, async (client) => {
    const results: Result[] = []
    for (const id of new Set(ids)) {
      const result = await attempt(id, () => move(client, id))
      results.push(result)
      if (!options.json) tell(result, told)
    }
    if (options.json)
      outJson(results.map((result) => ('task' in result ? result : { id: result.id, error: errorFacts(result.error) })))
    return Math.max(EXIT.ok, ...results.map((result) => ('error' in result ? EXIT_CODES[result.error.code] : EXIT.ok)))
  })

const tell = (result: Result, told: Verb['told']): void => {
  if ('task' in result) out(`${result.id} ${told(result.task)}`)
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
