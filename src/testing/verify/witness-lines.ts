/** The lines of a witness log, and how they are read: file by file, line by line. */
import { createReadStream, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { HoldfastError } from '../../core/errors.ts'

/** What every line has: when it was written, in UTC milliseconds, and by which process (`host/pid`). */
interface Stamp {
  readonly at: number
  readonly process: string
}

/** A run begins. `input` is the digest of what the handler sees, `until` the end of its lease as it was claimed. */
export interface StartLine extends Stamp {
  readonly what: 'start'
  readonly task: string
  readonly fence: number
  readonly worker: string
  readonly type: string
  readonly queue: string
  readonly input?: string
  readonly until?: number
}

/** The handler returned or threw. `output` is the digest of what it returned. */
export interface EndLine extends Stamp {
  readonly what: 'end' | 'threw'
  readonly task: string
  readonly fence: number
  readonly output?: string
}

/** A call of submit is about to be made. If its process dies before it ends, up to `tasks` tasks may exist. */
interface SubmittingLine extends Stamp {
  readonly what: 'submitting'
  readonly call: string
  /** Default 1. */
  readonly tasks?: number
}

/** The call resolved with this task. */
export interface SubmittedLine extends Stamp {
  readonly what: 'submitted'
  readonly call?: string
  readonly task: string
  readonly key?: string | null
  readonly input?: string
}

/** The call was rejected. After STORE_UNAVAILABLE up to `tasks` of its tasks may exist all the same. */
interface RefusedLine extends Stamp {
  readonly what: 'refused'
  readonly call?: string
  /** null if it was not an error of Holdfast. */
  readonly code: string | null
  readonly tasks?: number
}

/** The application removed this task on purpose. */
interface RemovedLine extends Stamp {
  readonly what: 'removed'
  readonly task: string
}

/** The queues and types that a worker serves. */
export interface ServesLine extends Stamp {
  readonly what: 'serves'
  readonly worker: string
  readonly queues: readonly string[]
  readonly types: readonly string[]
}

/** The process `dead` was observed to have ended, for example by a supervisor. */
interface DownLine extends Stamp {
  readonly what: 'down'
  readonly dead: string
}

/** An unhandled rejection or an uncaught exception. */
interface UnhandledLine extends Stamp {
  readonly what: 'unhandled'
  readonly message: string
}

/** A line of a witness log. */
export type WitnessLine =
  | StartLine
  | EndLine
  | SubmittingLine
  | SubmittedLine
  | RefusedLine
  | RemovedLine
  | ServesLine
  | DownLine
  | UnhandledLine

export const WITNESS_ENDING = '.witness.jsonl'

/** Each path is a file, or a folder of files that end in `.witness.jsonl`. */
export const witnessFiles = (paths: readonly string[]): string[] =>
  paths.flatMap((path) => {
    const found = statSync(path, { throwIfNoEntry: false })
    if (found === undefined)
      throw new HoldfastError('INVALID_OPTION', `witness: there is no file or folder '${path}'`, { field: 'witness' })
    if (!found.isDirectory()) return [path]
    return readdirSync(path)
      .filter((name) => name.endsWith(WITNESS_ENDING))
      .sort()
      .map((name) => join(path, name))
  })

/** `cut` is a line that its process did not finish, for example because it was killed. */
export async function* readWitness(file: string): AsyncGenerator<WitnessLine | 'cut', void, undefined> {
  for await (const text of createInterface({
    input: createReadStream(file, 'utf8'),
    crlfDelay: Number.POSITIVE_INFINITY,
  }))
    if (text !== '') yield parsed(text)
}

const parsed = (text: string): WitnessLine | 'cut' => {
  try {
    const line = JSON.parse(text) as WitnessLine
    return typeof line === 'object' && line !== null && typeof line.what === 'string' ? line : 'cut'
  } catch {
    return 'cut'
  }
}
